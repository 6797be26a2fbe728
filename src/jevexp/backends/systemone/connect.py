"""Whether the service is there, and what it says of itself before the first question."""

from collections.abc import Iterable, Mapping
from typing import Any

from jevexp.backends.transport import Failure, Transport
from jevexp.errors import InputError

_MOST_NAMES = 100


def facts(transport: Transport, url: str) -> dict[str, Any]:
    """What `/health` and `/v1/models` say; null for what they do not.

    `model` is the one that `/health` names as its own. `models` are the names that may be asked
    for, which say nothing about who will answer: services list aliases there.

    Raises:
        InputError: nobody answers at that address.
    """
    health = _look(transport, "/health", url)
    listed = _look(transport, "/v1/models", url)
    names = sorted(set(_names(listed)))
    return {
        "model": _text(health.get("model")),
        "version": _text(health.get("version")),
        "models": names[:_MOST_NAMES] or None,
    }


def _look(transport: Transport, path: str, url: str) -> Mapping[str, Any]:
    try:
        return transport.get(path).body
    except Failure as failure:
        # Services hide these; whether the key is good is seen at the first question.
        if failure.status is not None:
            return {}
        reason = {"connection_failed": "no server answers there"}.get(
            failure.code, "it does not answer in time"
        )
        raise InputError(
            f"backend.base_url: {url} is not usable: {reason}; start a server there, or set "
            "backend.base_url=URL"
        ) from failure


def _names(listed: Mapping[str, Any]) -> Iterable[str]:
    """The names in a list as TypeSafe's service gives it, or as OpenAI's does."""
    for key, name in (("models", "name"), ("data", "id")):
        entries = listed.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and (found := _text(entry.get(name))):
                yield found


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
