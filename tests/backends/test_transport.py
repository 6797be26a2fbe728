"""What a server may do to the connection: nothing is waited for, unpacked or believed for long."""

import base64
import gzip
import hashlib
import json
import time
import tracemalloc
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


JSON = b'{"a": "caf\xc3\xa9"}'


def packed_as(encoding: str, body: bytes) -> bytes:
    """An answer whose body is packed as it says."""
    head = f"Content-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    return OK + head.encode() + body


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(JSON)),
        ("X-Gzip", gzip.compress(JSON)),
        ("deflate", zlib.compress(JSON)),
        ("deflate", zlib.compress(JSON)[2:-4]),
        ("identity", JSON),
        ("utf-8", JSON),
        ("gzip", JSON),
    ],
    ids=["gzip", "x-gzip", "zlib", "raw deflate", "identity", "no packing", "not packed at all"],
)
def test_a_packed_answer_is_read(encoding: str, body: bytes) -> None:
    with raw_server(saying(packed_as(encoding, body))) as port:
        transport = Transport(f"http://127.0.0.1:{port}", None, 5.0, 5.0)
        reply = transport.get("/x")
        transport.close()
    assert reply.body == {"a": "café"}
    assert reply.headers == {"content-encoding": encoding}


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b" " * (64 << 20))),
        ("deflate", zlib.compress(b" " * (64 << 20))),
        ("gzip", gzip.compress(b" " * (MOST_BYTES + 1))),
    ],
)
def test_a_packed_body_is_unpacked_no_further_than_the_limit(encoding: str, body: bytes) -> None:
    assert len(body) < MOST_BYTES
    tracemalloc.start()
    found = failure(saying(packed_as(encoding, body)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (found.code, found.status) == ("response_too_large", 200)
    assert found.evidence["body"] == " " * 2000
    assert peak < 4 * MOST_BYTES


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("br", b"\x8b\x7f\x80"),
        ("zstd", b"\x28\xb5\x2f\xfd" * 1000),
        ("gzip", gzip.compress(JSON)[:-1]),
        ("gzip", gzip.compress(JSON) + b"\xff"),
        ("gzip, gzip", gzip.compress(gzip.compress(JSON))),
    ],
    ids=["br", "zstd", "cut off", "more behind it", "twice"],
)
def test_a_body_that_cannot_be_unpacked_is_kept_as_bytes(encoding: str, body: bytes) -> None:
    found = failure(saying(packed_as(encoding, body)))
    assert (found.code, found.status) == ("bad_response", 200)
    assert found.evidence["headers"] == {"content-encoding": encoding}
    kept = found.evidence["body"]
    assert base64.b64decode(kept.pop("base64")) == body[:2000]
    assert kept == {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}


def test_text_that_is_no_json_is_kept_as_text() -> None:
    page = b"<html>" + b"\xc3\xa9" * 1000
    found = failure(saying(OK + b"Content-Length: 2006\r\n\r\n" + page))
    assert found.evidence["body"] == "<html>" + "é" * 997
    cut_off = failure(saying(OK + b"Content-Length: 2\r\n\r\na\xc3"))
    assert cut_off.evidence["body"]["base64"] == "YcM="


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"message": "slow down", "code": 429}}, "error_body_429"),
        ({"error": {"message": "no", "status": "401"}}, "error_body_401"),
        ({"error": "no", "code": 403}, "error_body_403"),
        ({"object": "error", "message": "no", "code": 429}, "error_body_429"),
        ({"success": False, "errors": [{"code": 403}], "result": None}, "error_body_403"),
        ({"error": {"message": "no", "code": 500}}, "error_body"),
        ({"error": {"code": "rate_limit_exceeded"}}, "error_body"),
        ({"error": True, "message": "no"}, "error_body"),
    ],
)
def test_an_error_under_a_status_of_success_is_a_failure(body: object, code: str) -> None:
    content = json.dumps(body).encode()
    answer = OK + f"Content-Length: {len(content)}\r\n\r\n".encode() + content
    found = failure(saying(answer))
    assert (found.code, found.status) == (code, 200)
    assert found.evidence["body"] == body


@pytest.mark.parametrize(
    "body",
    [
        {"error": None},
        {"error": ""},
        {"error": {}},
        {"error": 0.01},
        {"errors": [], "success": True},
        {"code": 429},
        {"answers": {"error": {"code": 429}}},
    ],
)
def test_what_is_no_error_is_an_answer(body: object) -> None:
    content = json.dumps(body).encode()
    answer = OK + f"Content-Length: {len(content)}\r\n\r\n".encode() + content
    with raw_server(saying(answer)) as port:
        transport = Transport(f"http://127.0.0.1:{port}", None, 5.0, 5.0)
        assert transport.get("/x").body == body
        transport.close()


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
        with pytest.raises(Failure, match="certificate_refused"):
            refused.get("/x")
        refused.close()
        # The same server, once a person vouches for it, so that it was the certificate.
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        trusted = Transport(url, "sk-secret", 5.0, 5.0)
        assert trusted.get("/x").body == {"a": 1}
        trusted.close()


def test_https_to_a_server_without_tls_has_a_code_of_its_own() -> None:
    with raw_server(saying(b"HTTP/1.1 400 X\r\nContent-Length: 2\r\n\r\n{}")) as port:
        transport = Transport(f"https://127.0.0.1:{port}", None, 5.0, 5.0)
        with pytest.raises(Failure, match="tls_failed"):
            transport.get("/x")
        transport.close()
