"""What a server may do to the connection: nothing is waited for, unpacked or believed for long."""

import gzip
import json
import time
import zlib
from pathlib import Path

import pytest

from jevexp.backends.transport import MOST_BYTES, Failure, Transport
from tests.support.raw_server import Behaviour, dripping, raw_server, saying, self_signed

OK = b"HTTP/1.1 200 OK\r\n"
LIMIT_S = 0.5


def failure(behave: Behaviour) -> Failure:
    """What one request to such a server comes to, which has to be over in time."""
    with raw_server(behave) as port:
        transport = Transport(f"http://127.0.0.1:{port}", None, LIMIT_S, LIMIT_S)
        started = time.monotonic()
        try:
            with pytest.raises(Failure) as caught:
                transport.get("/x")
        finally:
            transport.close()
    assert time.monotonic() - started < 5 + LIMIT_S
    return caught.value


@pytest.mark.parametrize(
    ("head", "drop"),
    [
        (b"", b""),
        (OK, b"X: y\r\n"),
        (OK, b"x"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (OK + b"Content-Length: 1000000\r\n\r\n{", b" "),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (OK + b"\r\n", b" "),
    ],
    ids=["silent", "headers", "a header", "interim", "body", "chunks", "until the end"],
)
def test_an_answer_that_drips_is_left_when_the_time_is_up(head: bytes, drop: bytes) -> None:
    assert failure(dripping(head, drop, 0.05)).code == "timeout"


def test_headers_without_end_are_no_answer() -> None:
    assert failure(saying(OK + b"X: y\r\n" * 100_000)).code == "connection_failed"


def test_a_body_without_end_is_left_at_the_limit() -> None:
    found = failure(dripping(OK + b"\r\n", b" " * (1 << 20), 0.0))
    assert found.code in {"response_too_large", "timeout"}


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b" " * (64 << 20))),
        ("deflate", zlib.compress(b" " * (64 << 20))),
        ("br", b"\x8b\x7f\x80"),
        ("zstd", b"\x28\xb5\x2f\xfd"),
    ],
)
def test_a_packed_body_is_not_unpacked(encoding: str, packed: bytes) -> None:
    assert len(packed) < MOST_BYTES
    head = f"Content-Encoding: {encoding}\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    found = failure(saying(OK + head + packed))
    assert (found.code, found.status) == ("bad_response", 200)
    assert len(json.dumps(found.evidence)) < 20_000


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"{" + b'"a":' + b"1" * 1_000_000 + b"}",
        b'{"a": 1e999999}',
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'{"a": "\\ud800"}',
        b'{"a": "\xff"}',
    ],
    ids=["lists", "objects", "digits", "exponent", "twice", "NaN", "half", "bytes"],
)
def test_a_body_that_is_no_json_is_a_bad_response(body: bytes) -> None:
    found = failure(saying(OK + f"Content-Length: {len(body)}\r\n\r\n".encode() + body))
    assert (found.code, found.status) == ("bad_response", 200)
    assert len(json.dumps(found.evidence)) < 20_000


def test_a_redirect_is_not_followed() -> None:
    answer = b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\n{}"
    assert failure(saying(answer)).status == 307


KEY = "sk-0123456789abcdef"


def test_of_the_headers_those_are_kept_that_tell_who_and_why() -> None:
    said = b"Retry-After: 7\r\nX-Request-ID: r-1\r\nSet-Cookie: a=b\r\nServer: s\r\n"
    said += b"x-litellm-response-cost: 0.00002\r\nContent-Length: 2\r\n\r\n{}"
    expected = {"retry-after": "7", "x-litellm-response-cost": "0.00002", "x-request-id": "r-1"}
    with raw_server(saying(OK + said)) as port:
        transport = Transport(f"http://127.0.0.1:{port}", None, 5.0, 5.0)
        reply = transport.get("/x")
        transport.close()
    assert reply.headers == expected
    assert reply.evidence("/x") == {"endpoint": "/x", "body": {}, "headers": expected}
    refused = failure(saying(b"HTTP/1.1 503 X\r\n" + said))
    assert refused.evidence == {"endpoint": "/x", "body": {}, "headers": expected}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("https://a.test/b", "https://a.test/b"),
        ("https://a.test/?" + "x" * 5000, "https://a.test/?" + "x" * 284),
        (f"https://a.test/?key={KEY}", "https://a.test/?key=[key]"),
        (f"https://a.test/?key={KEY.replace('-', '%2D').upper()}", "[key]"),
        ("x" * 290 + KEY, "x" * 290 + "[key]"),
    ],
    ids=["short", "long", "with the key", "with the key in other letters", "at the limit"],
)
def test_a_kept_header_is_short_and_without_the_key(sent: str, kept: str) -> None:
    answer = f"HTTP/1.1 307 X\r\nLocation: {sent}\r\nContent-Length: 2\r\n\r\n{{}}"
    with raw_server(saying(answer.encode())) as port:
        transport = Transport(f"http://127.0.0.1:{port}", KEY, 5.0, 5.0)
        with pytest.raises(Failure) as caught:
            transport.get("/x")
        transport.close()
    assert caught.value.evidence["headers"] == {"location": kept}


def test_a_key_in_two_kept_headers_is_in_neither() -> None:
    halves = f"Location: {KEY[:10]}\r\nRequest-Id: {KEY[10:]}\r\n".encode()
    with raw_server(saying(OK + halves + b"Content-Length: 2\r\n\r\n{}")) as port:
        transport = Transport(f"http://127.0.0.1:{port}", KEY, 5.0, 5.0)
        assert transport.get("/x").headers == {"location": "[key]", "request-id": "[key]"}
        transport.close()


def test_a_certificate_that_nobody_vouches_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls, certificate = self_signed(tmp_path)
    answer = saying(OK + b'Content-Length: 8\r\n\r\n{"a": 1}')
    with raw_server(answer, tls) as port:
        url = f"https://127.0.0.1:{port}"
        refused = Transport(url, "sk-secret", 5.0, 5.0)
        with pytest.raises(Failure, match="connection_failed"):
            refused.get("/x")
        refused.close()
        # The same server, once a person vouches for it, so that it was the certificate.
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        trusted = Transport(url, "sk-secret", 5.0, 5.0)
        assert trusted.get("/x").body == {"a": 1}
        trusted.close()
