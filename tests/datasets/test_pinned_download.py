"""Downloads against a real server: what is refused, how it is said, and that nothing is kept."""

import gzip
import io
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from rich.console import Console

from jevexp.datasets.pinned import Limits, download, pinned_url
from jevexp.errors import InputError
from tests.datasets.file_server import Answer, FileServer, pin_of, pinned, serving, task_lines

BODY = task_lines()
PIN = pin_of(BODY)
WAYS_OUT = "run `jevexp data pull` later, point dataset.path at a copy, or use dataset=demo"
SOON = Limits(connect_s=1.0, read_s=0.2, total_s=0.5)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(BODY) as running:
        yield running


def refusal(url: str, limits: Limits = SOON) -> str:
    with pytest.raises(InputError) as caught:
        download(url, io.BytesIO(), PIN, limits=limits)
    cause, found, _ = str(caught.value).removeprefix(f"{url}: ").partition(f"; {WAYS_OUT}")
    assert found
    assert "\n" not in cause
    return cause


def test_the_pinned_bytes_are_written(server: FileServer) -> None:
    file = io.BytesIO()
    download(f"{server.url}/x", file, PIN)
    assert file.getvalue() == BODY


def test_a_proxy_is_not_asked_for_this_machine(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    download(f"{server.url}/x", io.BytesIO(), PIN)


def test_a_progress_bar_is_drawn_on_a_terminal_only(server: FileServer) -> None:
    for is_terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=is_terminal, width=80)
        download(f"{server.url}/x", io.BytesIO(), PIN, show=console)
        assert isinstance(console.file, io.StringIO)
        assert ("data/tasks.jsonl" in console.file.getvalue()) is is_terminal


def sends(body: bytes) -> Answer:
    def answer(request: BaseHTTPRequestHandler, _: bytes) -> None:
        request.send_response(200)
        request.end_headers()
        request.wfile.write(body)

    return answer


def status(code: int, **headers: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler, _: bytes) -> None:
        request.send_response(code)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()

    return answer


def test_a_wrong_hash_is_refused_with_both_hashes(server: FileServer) -> None:
    other = BODY.replace(b"12", b"13")
    server.answer = sends(other)
    expected, found = PIN.sha256, pin_of(other).sha256
    assert refusal(server.url) == f"expected sha256 {expected}, found {found}"


def test_a_short_file_is_refused(server: FileServer) -> None:
    server.answer = sends(BODY[:100])
    assert refusal(server.url) == f"expected {len(BODY)} bytes, found 100"


def test_a_connection_that_ends_early_is_refused(server: FileServer) -> None:
    def answer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[:100])

    server.answer = answer
    assert refusal(server.url).startswith("the connection broke: peer closed connection")


def test_no_more_than_the_pinned_bytes_are_read(server: FileServer) -> None:
    def endless(request: BaseHTTPRequestHandler, body: bytes) -> None:
        request.send_response(200)
        request.end_headers()
        while not server.over.is_set():
            request.wfile.write(body)

    server.answer = endless
    assert refusal(server.url) == f"it sends more than the pinned {len(BODY)} bytes"


def test_compressed_content_is_not_unpacked(server: FileServer) -> None:
    packed = gzip.compress(b"x" * 1_000_000)

    def answer(request: BaseHTTPRequestHandler, _: bytes) -> None:
        assert request.headers["Accept-Encoding"] == "identity"
        request.send_response(200)
        request.send_header("Content-Encoding", "gzip")
        request.end_headers()
        request.wfile.write(packed)

    server.answer = answer
    assert refusal(server.url) == f"it sends more than the pinned {len(BODY)} bytes"


def test_a_server_that_never_answers_is_left(server: FileServer) -> None:
    server.answer = lambda request, body: server.over.wait()
    assert refusal(server.url) == "no answer for 0.2 s"


def test_a_server_that_stops_halfway_is_left(server: FileServer) -> None:
    def answer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        request.send_response(200)
        request.end_headers()
        request.wfile.write(body[:100])
        request.wfile.flush()
        server.over.wait()

    server.answer = answer
    assert refusal(server.url) == "no answer for 0.2 s"


def test_a_server_that_trickles_is_left_when_the_time_is_up(server: FileServer) -> None:
    def answer(request: BaseHTTPRequestHandler, body: bytes) -> None:
        request.send_response(200)
        request.end_headers()
        for byte in body:
            request.wfile.write(bytes([byte]))
            if server.over.wait(0.05):
                return

    server.answer = answer
    assert refusal(server.url) == "not complete after 0.5 s"


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_is_refused(server: FileServer, code: int) -> None:
    server.answer = status(code, Location=f"{server.url}/elsewhere")
    assert refusal(f"{server.url}/x") == f"HTTP {code}, a redirect, which is not followed"
    assert server.requests == ["/x"]


@pytest.mark.parametrize("code", [204, 206, 403, 404, 429, 500])
def test_another_status_than_200_is_refused(server: FileServer, code: int) -> None:
    server.answer = status(code)
    assert refusal(server.url) == f"HTTP {code}"


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/x"
    assert refusal(url).startswith("no connection: ")


def test_an_answer_that_is_not_http_is_refused(server: FileServer) -> None:
    server.answer = lambda request, body: request.wfile.write(b"220 ready\r\n\r\n")
    assert refusal(server.url).startswith("the connection broke: ")


def test_an_unusable_proxy_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://127.0.0.1:1")
    assert refusal("https://example.invalid/x").startswith("no HTTP client: ")


def test_the_address_is_made_of_base_repository_commit_and_path() -> None:
    dataset = pinned("https://example.org/raw/", pin_of(BODY, "a b/tasks.jsonl"))
    assert (
        pinned_url(dataset, dataset.files[0])
        == "https://example.org/raw/someone/benchmark/c0ffee/a%20b/tasks.jsonl"
    )


@pytest.mark.parametrize("host", ["localhost:81", "127.0.0.1", "127.1.2.3:8000", "[::1]:8000"])
def test_http_is_for_this_machine(host: str) -> None:
    assert pinned_url(pinned(f"http://{host}", PIN), PIN).startswith(f"http://{host}/")


@pytest.mark.parametrize(
    "base_url",
    [
        "http://example.org",
        "http://localhost.example.org",
        "ftp://localhost",
        "file:///x",
        "https://[::1",
        "x",
    ],
)
def test_another_address_is_refused(base_url: str) -> None:
    with pytest.raises(InputError) as caught:
        pinned_url(pinned(base_url, PIN), PIN)
    assert str(caught.value) in (
        "dataset.base_url: plain http reaches another machine unprotected; use https",
        "dataset.base_url: expected http(s)://HOST[:PORT][/PATH] without user, query or fragment",
    )
    assert ("plain http" in str(caught.value)) == base_url.startswith("http://")


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(InputError) as caught:
        pinned_url(pinned("https://me:hush@example.org", PIN), PIN)
    assert str(caught.value).startswith("dataset.base_url: expected http(s)://HOST")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("field", ["base_url", "repository", "commit"])
def test_a_part_of_the_address_that_is_missing_is_named(field: str) -> None:
    dataset = pinned("https://example.org", PIN).model_copy(update={field: None})
    with pytest.raises(InputError) as caught:
        pinned_url(dataset, PIN)
    expected = f"dataset.{field}: missing; a pinned dataset needs it to download"
    assert str(caught.value) == expected
