"""What a server sent, as evidence may hold it."""

import hashlib
from typing import Any

from jevexp.core.json import dumps, loads
from jevexp.untrusted.secrets import Secrets

# Enough of a body that is not what was expected to see what it was.
_EXCERPT_BYTES = 2000
# A header is a stranger's text as well.
_KNOWN_TYPES = frozenset(
    {
        "application/json",
        "application/octet-stream",
        "application/problem+json",
        "application/x-ndjson",
        "application/xml",
        "text/event-stream",
        "text/html",
        "text/plain",
        "text/xml",
    }
)


def parsed(raw: bytes, secrets: Secrets) -> tuple[Any, bool]:
    """A body as JSON in which no secret is left, and whether there was one.

    Raises:
        ValueError: it is no JSON, or a secret is spread over it.
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

    Its beginning where no secret is in use. Otherwise what can be said of it without showing any:
    there is no end of ways in which a secret could be spelled in bytes that nobody understands.
    """
    if not secrets.in_use:
        return raw[:_EXCERPT_BYTES].decode(errors="replace")
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return {
        "withheld": "it could hold the key",
        "bytes": len(raw),
        "content_type": media_type if media_type in _KNOWN_TYPES else None,
        "sha256": hashlib.sha256(raw).hexdigest(),
    }
