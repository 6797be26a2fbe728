"""An exchange with a hostile server ends by its deadline and within its bytes."""

import socket
import threading
import time
from pathlib import Path
from typing import Any

import httpcore
import httpx
import pytest

from jevexp.backends.transport import Failure, Transport
from jevexp.untrusted.http import BoundedBackend, Bounds, bounded_client
from tests.support.raw_server import Behaviour, dripping, raw_server, saying, self_signed

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 2\r\n\r\n{}"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LIMIT_S = 0.4
# Without a deadline none of them would ever end; on a busy machine an end takes its time.
SOON_S = 30


def failure(behave: Behaviour, *, request_s: float = LIMIT_S, body: int = 0) -> Failure:
    with raw_server(behave) as port:
        transport = Transport(f"http://127.0.0.1:{port}", "sk-secret-0123456789", 5.0, request_s)
        started = time.monotonic()
        try:
            with pytest.raises(Failure) as raised:
                transport.post("/x", {"padding": "x" * body})
        finally:
            transport.close()
        assert time.monotonic() - started < SOON_S
    return raised.value


@pytest.mark.parametrize(
    ("head", "drop"),
    [
        (b"", CONTINUE),
        (b"", HINTS),
        (CONTINUE + OK, b"X: y\r\n"),
        (b"HTTP/1.1 200 ", b"O"),
        (OK + b"Content-Length: 100000\r\n\r\n", b"x"),
        (CHUNKED, b"1\r\nx\r\n"),
        (CHUNKED + b"1;", b"x"),
        (CHUNKED + b"0\r\n", b"X: y\r\n"),
        (OK + b"\r\n", b"x"),
    ],
    ids=[
        "continue", "hints", "headers", "reason", "body", "chunks", "extension",
        "trailers", "until the end",
    ],
)  # fmt: skip
def test_what_drips_ends_by_the_deadline(head: bytes, drop: bytes) -> None:
    assert failure(dripping(head, drop, 0.02)).code == "timeout"


@pytest.mark.parametrize("interim", [CONTINUE, HINTS], ids=["continue", "hints"])
def test_a_flood_of_interim_answers_is_not_listened_to(interim: bytes) -> None:
    """With time enough it is their number that ends it, which the deadline never would."""
    assert failure(dripping(b"", interim * 1000, 0), request_s=600).code == "response_too_large"


def test_a_flood_of_interim_answers_outlives_no_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jevexp.untrusted.http._MOST_HEAD_BYTES", 1 << 60)
    assert failure(dripping(b"", CONTINUE * 1000, 0)).code == "timeout"


@pytest.mark.parametrize(
    ("head", "drop", "codes"),
    [
        (OK, b"X: y\r\n" * 1000, {"connection_failed", "response_too_large"}),
        (OK + b"X: ", b"y" * 10_000, {"connection_failed", "response_too_large"}),
        (OK + b"\r\n", b"x" * 100_000, {"response_too_large"}),
        (CHUNKED, b"1;" + b"y" * 4000 + b"\r\nx\r\n", {"response_too_large", "connection_failed"}),
        (CHUNKED + b"0\r\n", b"X: y\r\n" * 1000, {"connection_failed", "response_too_large"}),
    ],
    ids=["headers", "a header", "body", "extensions", "trailers"],
)
def test_what_never_ends_is_bounded_in_bytes(head: bytes, drop: bytes, codes: set[str]) -> None:
    assert failure(dripping(head, drop, 0), request_s=600).code in codes


def test_a_few_interim_answers_are_none_of_our_business() -> None:
    with raw_server(saying(CONTINUE * 3 + HINTS + EMPTY)) as port:
        transport = Transport(f"http://127.0.0.1:{port}", None, 5.0, 60.0)
        assert transport.get("/x").body == {}
        transport.close()


def test_a_server_that_takes_nothing_ends_by_the_deadline() -> None:
    """The request itself does not get through."""

    def deaf(stream: socket.socket, over: threading.Event) -> None:
        del stream
        over.wait(SOON_S)

    assert failure(deaf, body=32 << 20).code == "timeout"


def test_a_server_that_takes_little_by_little_ends_by_the_deadline() -> None:
    def slow(stream: socket.socket, over: threading.Event) -> None:
        while not over.wait(0.02):
            stream.recv(1 << 14)

    assert failure(slow, body=32 << 20).code == "timeout"


def test_a_handshake_that_drips_ends_by_the_deadline(tmp_path: Path) -> None:
    del tmp_path
    with raw_server(dripping(b"\x16\x03\x03\x40\x00", b"\x00", 0.02)) as port:
        transport = Transport(f"https://127.0.0.1:{port}", None, 5.0, LIMIT_S)
        with pytest.raises(Failure) as raised:
            transport.get("/x")
        transport.close()
    assert raised.value.code in {"timeout", "connection_failed"}


def test_an_encrypted_flood_ends_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, certificate = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with raw_server(dripping(b"", CONTINUE, 0.02), tls) as port:
        transport = Transport(f"https://127.0.0.1:{port}", None, 5.0, LIMIT_S)
        with pytest.raises(Failure, match="timeout"):
            transport.get("/x")
        transport.close()


def test_each_exchange_has_its_own_deadline() -> None:
    """One that ended late leaves nothing behind for the next."""
    turns = iter([dripping(b"", CONTINUE, 0.02), saying(EMPTY)])

    def in_turn(stream: socket.socket, over: threading.Event) -> None:
        next(turns)(stream, over)

    with raw_server(_each_in_a_thread(in_turn)) as port:
        bounds = Bounds()
        with bounded_client(bounds, f"http://127.0.0.1:{port}", httpx.Timeout(60.0)) as client:
            with pytest.raises(httpx.ReadTimeout), bounds.within(LIMIT_S, 1000):
                client.get("/x")
            with bounds.within(60.0, 1000) as allowance:
                assert client.get("/x").json() == {}
    assert not allowance.exceeded


def _each_in_a_thread(behave: Behaviour) -> Behaviour:
    def started(stream: socket.socket, over: threading.Event) -> None:
        copy = stream.dup()

        def serve() -> None:
            with copy:
                try:
                    behave(copy, over)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()

    return started


def test_a_host_with_many_dead_addresses_takes_one_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, float]] = []

    def connect(self: Any, host: str, port: int, timeout: float, *_: Any) -> Any:
        asked.append((host, timeout))
        raise httpcore.ConnectTimeout("dead")

    addresses = [(0, 0, 0, "", (f"192.0.2.{index}", 80)) for index in range(8)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", connect)
    with pytest.raises(httpcore.ConnectTimeout):
        BoundedBackend(Bounds()).connect_tcp("models.example", 80, timeout=8.0)
    assert [host for host, _ in asked] == [f"192.0.2.{index}" for index in range(8)]
    assert asked[0][1] == pytest.approx(1.0, abs=0.01)


def test_a_host_with_one_dead_address_is_reached_at_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def connect(self: Any, host: str, *_: Any) -> httpcore.MockStream:
        if host == "192.0.2.1":
            raise httpcore.ConnectError("dead")
        return httpcore.MockStream([b"from the other"])

    addresses = [(0, 0, 0, "", (host, 80)) for host in ("192.0.2.1", "192.0.2.2")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    monkeypatch.setattr(httpcore.SyncBackend, "connect_tcp", connect)
    stream = BoundedBackend(Bounds()).connect_tcp("models.example", 80, timeout=60.0)
    assert stream.read(100) == b"from the other"


# Cookies


@pytest.mark.parametrize(
    "cookie",
    [b"Set-Cookie: a=1\r\n", b"set-cookie: a=1; Path=/\r\nSET-COOKIE: b=2\r\n"],
    ids=["one", "two, spelled otherwise"],
)
def test_a_cookie_is_never_sent_back(cookie: bytes) -> None:
    seen: list[bytes] = []

    def setting(stream: socket.socket, over: threading.Event) -> None:
        del over
        for _ in range(3):
            stream.sendall(OK + cookie + b"Content-Length: 2\r\n\r\n{}")
            seen.append(stream.recv(65536))

    with raw_server(setting) as port:
        transport = Transport(f"http://127.0.0.1:{port}", None, 5.0, 60.0)
        for _ in range(3):
            transport.get("/x")
        transport.close()
    # The first request is read before this server behaves.
    assert len([request for request in seen if request]) == 2
    assert not any(b"cookie" in request.lower() for request in seen)


def test_the_cookie_of_a_header_that_a_person_configured_is_sent() -> None:
    seen: list[bytes] = []

    def recording(stream: socket.socket, over: threading.Event) -> None:
        del over
        stream.sendall(EMPTY)
        seen.append(stream.recv(65536))
        stream.sendall(EMPTY)

    with raw_server(recording) as port:
        headers = {"Cookie": "session=mine"}
        transport = Transport(f"http://127.0.0.1:{port}", None, 5.0, 60.0, headers=headers)
        transport.get("/x")
        transport.get("/x")
        transport.close()
    assert b"session=mine" in seen[0]


# Proxies and certificates of the environment


@pytest.mark.parametrize("value", ["nonsense://me:hush@127.0.0.1:1", "http://me@proxy.test:hush"])
def test_an_unusable_proxy_is_one_line_without_its_password(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "all_proxy", "no_proxy", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", value)
    with pytest.raises(ValueError, match="proxy that cannot be used") as raised:
        bounded_client(Bounds(), "https://models.example", httpx.Timeout(1.0))
    assert "hush" not in str(raised.value)


def test_unusable_certificates_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path))
    with pytest.raises(ValueError, match="certificates that cannot be used"):
        bounded_client(Bounds(), "https://models.example", httpx.Timeout(1.0))


def test_a_proxy_of_the_environment_gets_what_is_for_other_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "all_proxy", "no_proxy", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with raw_server(saying(EMPTY)) as port:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        transport = Transport("http://models.example", None, 5.0, 60.0)
        assert transport.get("/x").body == {}
        transport.close()
