"""The transport below both packages: how much it takes, whom it asks, what it leaves behind."""

import gzip
import threading

import httpx
import pytest

from jevexp.backends.judgevet import exchange
from jevexp.backends.judgevet.exchange import RecordingTransport
from jevexp.core.decision import Request
from jevexp.untrusted.addresses import proxy_for
from jevexp.untrusted.secrets import Secrets
from tests.backends.judgevet.conftest import Open
from tests.support.raw_server import dripping, raw_server
from tests.support.scripted_llama import Answer, scripted_llama
from tests.support.systemone import scripted_systemone
from tests.support.tasks import task


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person whose environment names a proxy, except for one host."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "proxy.test:3128")
    monkeypatch.setenv("no_proxy", "inside.test")


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org", "http://proxy.test:3128"),
        ("https://inside.test", None),
        ("https://127.0.0.1:8443", None),
        ("http://example.org", None),
    ],
)
def test_the_environments_proxy_is_for_other_machines(url: str, expected: str | None) -> None:
    assert proxy_for(url) == expected


def test_both_directions_are_kept() -> None:
    with scripted_llama() as server:
        server.answers["/x"] = Answer({"model": "m", "größe": 1}, headers={"X-Request-Id": "r-1"})
        transport = RecordingTransport(httpx, server.url, 5.0)
        with httpx.Client(base_url=server.url, transport=transport) as client:  # type: ignore[arg-type]
            assert client.post("/x", json={"a": 1}).json() == {"model": "m", "größe": 1}
    (kept,) = transport.exchanges
    assert kept.sent_json() == {"endpoint": "/x", "body": {"a": 1}}
    body = {"model": "m", "größe": 1}
    whole = {"endpoint": "/x", "body": body, "headers": {"x-request-id": "r-1"}}
    assert kept.received_json(Secrets([])) == (whole, False)
    assert (kept.status, kept.model, kept.failure) == (200, "m", None)


def test_a_packed_body_is_unpacked() -> None:
    packed = Answer(gzip.compress(b'{"model": "m"}'), headers={"Content-Encoding": "gzip"})
    with scripted_llama() as server:
        server.answers["/x"] = packed
        transport = RecordingTransport(httpx, server.url, 5.0)
        with httpx.Client(base_url=server.url, transport=transport) as client:  # type: ignore[arg-type]
            assert client.get("/x").json() == {"model": "m"}
    (kept,) = transport.exchanges
    assert (kept.model, kept.failure) == ("m", None)
    headers = {"content-encoding": "gzip"}
    whole = {"endpoint": "/x", "body": {"model": "m"}, "headers": headers}
    assert kept.received_json(Secrets([])) == (whole, False)


def test_a_packed_body_is_unpacked_no_further_than_the_bound() -> None:
    packed = Answer(gzip.compress(b" " * (65 << 20)), headers={"Content-Encoding": "gzip"})
    with scripted_llama() as server:
        server.answers["/x"] = packed
        transport = RecordingTransport(httpx, server.url, 5.0)
        with (
            httpx.Client(base_url=server.url, transport=transport) as client,  # type: ignore[arg-type]
            pytest.raises(httpx.ReadError, match="too large"),
        ):
            client.get("/x")
        (request,) = server.seen
    assert request.headers["Accept-Encoding"] == "identity"
    (kept,) = transport.exchanges
    assert (kept.failure, kept.received) == ("response_too_large", packed.body)


def test_headers_that_drip_are_left_when_the_time_is_up() -> None:
    with raw_server(dripping(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.05)) as port:
        transport = RecordingTransport(httpx, f"http://127.0.0.1:{port}", 0.5)
        with (
            httpx.Client(transport=transport, timeout=60) as client,  # type: ignore[arg-type]
            pytest.raises(httpx.ReadTimeout),
        ):
            client.get(f"http://127.0.0.1:{port}/x")
    assert transport.exchanges[0].failure == "timeout"


def test_a_body_without_end_is_cut(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_MOST_BYTES", 100_000)
    with scripted_llama() as server:
        server.answers["/v1/systemone"] = Answer(b" " * 1_000_000)
        backend = opened(f"backend.base_url={server.url}", "backend.key_env=null")
        decision = backend.decide(Request.of(task("noul"), "m-1"))
    assert (decision.ok, decision.error) == (False, "response_too_large")
    assert decision.response["body"]["bytes"] < 300_000


def test_no_thread_is_left_behind(opened: Open) -> None:
    with scripted_systemone() as server:
        before = set(threading.enumerate())
        backend = opened(f"backend.base_url={server.url}", "backend.key_env=null")
        assert backend.decide(Request.of(task("noul"), "m-1")).ok
        backend.close()
        # The server has one for each connection, until it notices that it was closed.
        left = {one for one in threading.enumerate() if "process_request" not in one.name}
        assert left <= before
    session = opened("backend=typevet", "backend.typevet.backend=fake")
    assert session.decide(Request.of(task("noul"), "m-1")).ok
    session.close()
    assert {one for one in threading.enumerate() if "process_request" not in one.name} <= before
