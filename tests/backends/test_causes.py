"""What is told of a failed request, and what a person can do; whole runs are in tests/cli."""

from typing import Any

import pytest

from jevexp.backends.causes import Failed, Service
from jevexp.backends.transport import CLOSED, NO_HTTP

HERE = Service("http://127.0.0.1:8080", "backend", None)
NGINX = "400 The plain HTTP request was sent to HTTPS port"
OLD_SHAPE = {"completion_probabilities": [{"content": "A", "probs": [{"tok_str": "A", "prob": 1}]}]}


def failed(code: str, status: int | None, body: Any = None, **headers: str) -> Failed:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Failed(code, status, {"endpoint": "/v1/systemone", "body": body, "headers": named})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "no credits"}}, "no credits"),
        ({"error": "no credits"}, "no credits"),
        ({"error": True, "message": "no credits"}, "no credits"),
        ({"success": False, "errors": [{"code": 1, "message": "no credits"}]}, "no credits"),
        ({"detail": "no credits"}, "no credits"),
        ({"detail": [{"type": "missing", "msg": "no state"}]}, "no state"),
        ({"object": "error", "message": "no credits"}, "no credits"),
        ({"title": "no credits", "status": 402}, "no credits"),
        ("  no\r\n\tcredits ", "no credits"),
        ("<html><head><title>502 Bad Gateway</title>", "502 Bad Gateway"),
        ("<!doctype html>\n<p>sorry", "a web page"),
        ({"withheld": "…", "bytes": 9, "sha256": "…", "content_type": "text/html"}, "a web page"),
        ({"withheld": "…", "bytes": 9, "sha256": "…", "content_type": None}, ""),
        ("y" * 81, "y" * 79 + "…"),
        ("see https://me:secret@a.test/", "see https://me:***@a.test/"),
        ("\x1b]0;owned\x07\u202e", "\\x1b]0;owned\\x07\\u202e"),
        ({"error": {"message": 7}}, ""),
        ([1], ""),
        (None, ""),
    ],
)
def test_the_words_of_a_service(body: Any, words: str) -> None:
    assert failed("http_error", 402, body).words == words


def test_a_cause_without_a_word() -> None:
    assert Failed("timeout", None, None).cause == "timeout"
    assert Failed("http_error", 503, "no evidence").cause == "http_error (HTTP 503)"
    refused = {"endpoint": "/x", "reason": "Connection refused"}
    assert Failed("connection_failed", None, refused).cause == (
        "connection_failed (Connection refused)"
    )


@pytest.mark.parametrize(
    ("failure", "service", "todo"),
    [
        (
            failed("bad_response", 200, OLD_SHAPE),
            HERE,
            "that llama.cpp is older than December 2024: update it",
        ),
        (
            failed("http_error", 404),
            Service("http://127.0.0.1:8080/v1/", "backend.server", None),
            "its API is not at http://127.0.0.1:8080/v1/v1/systemone: set "
            "backend.server.base_url=http://127.0.0.1:8080, as the rest of the path is added",
        ),
        (
            failed("http_error", 400, "Client sent an HTTP request to an HTTPS server."),
            HERE,
            "set backend.base_url=https://127.0.0.1:8080 if it speaks https",
        ),
        (
            failed("http_error", 400, f"<html><title>{NGINX}</title>"),
            HERE,
            "set backend.base_url=https://127.0.0.1:8080 if it speaks https",
        ),
        (
            failed("error_body_401", 200, {"error": {"code": 401}}),
            Service(None, "backend", "MY_KEY"),
            "check the API key in the environment variable MY_KEY",
        ),
        (
            failed("http_error", 308, location="https://a.test/$(reboot)/v1/systemone"),
            HERE,
            "it redirects to a.test, and redirects are not followed",
        ),
        (
            failed("http_error", 308, location="https://[/v1/systemone"),
            HERE,
            "it redirects to no address, and redirects are not followed",
        ),
        (failed("http_error", 404), Service(None, "backend.server", None), None),
        (failed("http_error", 503, retry_after="$(reboot)"), HERE, None),
        (failed("http_error", 500), HERE, None),
    ],
    ids=["old llama.cpp", "/v1 twice", "https", "https page", "key in a body", "hostile redirect",
         "no address", "nothing to change", "hostile wait", "unknown"],
)  # fmt: skip
def test_what_to_do(failure: Failed, service: Service, todo: str | None) -> None:
    assert failure.todo(service) == todo


@pytest.mark.parametrize("reason", [CLOSED, NO_HTTP])
def test_a_server_that_speaks_no_plain_http_may_speak_https(reason: str) -> None:
    broken = Failed("connection_failed", None, {"endpoint": "/x", "reason": reason})
    assert broken.todo(HERE) == "set backend.base_url=https://127.0.0.1:8080 if it speaks https"
    assert broken.todo(Service("https://127.0.0.1:8080", "backend", None)) is None


@pytest.mark.parametrize(
    ("reason", "todo"),
    [
        ("certificate has expired", "it needs another certificate"),
        ("IP address mismatch, certificate is not valid for '127.0.0.1'.",
         "set backend.base_url to a name that its certificate is for"),
        ("unable to get local issuer certificate",
         "export SSL_CERT_FILE=FILE with the certificate of who signed its own, which is its own "
         "where it is self-signed"),
    ],
)  # fmt: skip
def test_a_certificate_is_trusted_only_where_that_can_help(reason: str, todo: str) -> None:
    refused = Failed("certificate_refused", None, {"endpoint": "/x", "reason": reason})
    assert refused.todo(Service("https://127.0.0.1:1", "backend", None)) == todo


@pytest.mark.parametrize(
    ("failure", "lasts"),
    [
        (failed("http_error", 529), False),
        (failed("http_error", 404), True),
        (failed("http_error", 501), True),
        (failed("timeout", None), False),
        (failed("bad_response", 200, "<html>"), True),
        (failed("bad_response", 200, "x"), False),
        (failed("options_unknown", None), True),
        (failed("error_body_403", 200), True),
        (failed("error_body_429", 200), False),
        (failed("certificate_refused", None), True),
    ],
)
def test_what_asking_again_would_not_change(failure: Failed, lasts: bool) -> None:
    assert failure.lasts is lasts
