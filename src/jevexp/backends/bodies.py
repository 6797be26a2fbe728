"""What came over HTTP as evidence may keep it: unpacked, bounded, without secrets."""

import codecs
import hashlib
import zlib
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from jevexp.core.decision import ERROR_BODY, STOP_STATUSES
from jevexp.core.json import dumps, loads
from jevexp.untrusted.secrets import MARK, Secrets

# What is kept of an answer's headers: who has it in the logs, what it cost, why it is none.
REQUEST_ID_HEADERS = ("x-request-id", "request-id", "openai-request-id", "x-litellm-call-id")
COST_HEADER = "x-litellm-response-cost"
KEPT_HEADERS = ("content-encoding", "location", "retry-after", COST_HEADER, *REQUEST_ID_HEADERS)
_MOST_HEADER = 300
# Enough of a body that is not what was expected to see what it was.
_EXCERPT_BYTES = 2000
_OF_BYTES = frozenset({"withheld", "bytes", "content_type", "sha256", "base64"})
# What unpacks a body: zlib's header or none for deflate, as services differ.
_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}
# A header may hold a secret too: only these are shown.
_KNOWN_TYPES = frozenset(
    f"application/{name}" for name in ("json", "octet-stream", "problem+json", "x-ndjson", "xml")
) | {"text/event-stream", "text/html", "text/plain", "text/xml"}


def unpacked(raw: bytes, encoding: str, most: int) -> bytes:
    """A body as it was before a service packed it, or of a larger one the first `most` + 1 bytes.

    As it came where it is not packed as `encoding` says, not whole, or in a way not known here.
    """
    for window in _WINDOWS.get(encoding.strip().lower(), ()):
        unpacking = zlib.decompressobj(window)
        with suppress(zlib.error):
            content = unpacking.decompress(raw, most + 1)
            if len(content) > most or (unpacking.eof and not unpacking.unused_data):
                return content
    return raw


def error_part(body: Any) -> Any:
    """What a body says in the place of an answer that went wrong; None where it does not."""
    if not isinstance(body, dict):
        return None
    if body.get("object") == "error":
        return body
    listed = body.get("errors")
    if body.get("success") is False and isinstance(listed, list) and listed:
        return listed[0]
    error = body.get("error")
    return error if error and isinstance(error, dict | str | bool) else None


def error_body_code(body: Any, told: str = "http_error") -> str | None:
    """The code for a body that tells of an error under a status of success; None for any other.

    It is `told`, the provider's own code for the error, where that is not the general one; else it
    ends in the error's code where that is a status that ends a run.
    """
    if (part := error_part(body)) is None:
        return None
    if told != "http_error":
        return told
    places = [place for place in (part, body) if isinstance(place, dict)]
    codes = [str(place.get(name)) for place in places for name in ("code", "status", "status_code")]
    status = next((status for status in STOP_STATUSES if str(status) in codes), None)
    return ERROR_BODY if status is None else f"{ERROR_BODY}_{status}"


def kept_headers(headers: Mapping[str, str], secrets: Secrets) -> dict[str, str]:
    """The headers of `KEPT_HEADERS`, by lower-case name: cut, and without any secret."""
    return {
        name: secrets.without(headers[name])[:_MOST_HEADER]
        for name in KEPT_HEADERS
        if name in headers
    }


def parsed(raw: bytes, secrets: Secrets) -> tuple[Any, bool]:
    """A body as JSON in which no secret is left, and whether there was one.

    Raises ValueError where it is no JSON, or a secret is spread over it.
    """
    body = loads(raw)
    if not secrets.in_use:
        return body, False
    kept = secrets.without(body)
    if secrets.spread_over(dumps(kept)):
        raise ValueError("a secret is spread over it")
    return kept, kept != body


def unreadable(raw: bytes, content_type: str | None, secrets: Secrets) -> Any:
    """A body that is no JSON, or not whole.

    Its beginning where no secret is in use: text, or what is no text in base64. Otherwise what can
    be said of it without showing any: there is no end of ways in which a secret could be spelled in
    bytes that nobody understands.
    """
    known = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    if secrets.in_use:
        media_type = (content_type or "").partition(";")[0].strip().lower()
        known_type = media_type if media_type in _KNOWN_TYPES else None
        return {"withheld": "it could hold the key", **known, "content_type": known_type}
    beginning = raw[:_EXCERPT_BYTES]
    try:
        # A character that the cut goes through is left out.
        return codecs.getincrementaldecoder("utf-8")().decode(beginning, final=beginning == raw)
    except UnicodeDecodeError:
        return {**known, "base64": b64encode(beginning).decode()}


def holds_no_answer(body: Mapping[str, Any]) -> bool:
    """Whether what is kept of a body stands for bytes, or had a secret replaced in it."""
    return {"bytes", "sha256"} < body.keys() <= _OF_BYTES or MARK in dumps(body)
