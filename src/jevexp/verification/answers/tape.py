"""A recording of one exchange, put in the place of the connection that it came over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jevexp.backends.transport import Failure, Reply
from jevexp.core.record import Record

# What a connection can come to without an HTTP status, and with one that promised an answer.
_SILENT = frozenset({"timeout", "connection_failed"})
_UNUSABLE = frozenset({"bad_response", "response_too_large"})


@dataclass(frozen=True, slots=True)
class Raw:
    """What a task's raw file holds, and the record that came of it."""

    request: Any
    response: Any
    record: Record

    @property
    def sent(self) -> dict[str, Any]:
        """What a provider adds to the request: what was really sent; empty where nothing was."""
        sent = self.request.get("sent") if isinstance(self.request, Mapping) else None
        return sent if isinstance(sent, dict) else {}


def reply_of(raw: Raw, code_of: Callable[[Any], str]) -> Reply:
    """The last reply of a failed attempt, as the connection gave it.

    Args:
        raw: the evidence, whose response is a failure's: `endpoint` and `body`, or null.
        code_of: the provider's code for the body of an HTTP error.

    Raises:
        Failure: the connection gave none; the code is the one that follows from status and body.
        ValueError: no connection ends like that.
    """
    status, code = raw.record.status_code, raw.record.error or ""
    if status is None:
        if code not in _SILENT or raw.response is not None:
            raise ValueError(f"no connection ends with {code!r} and without a status")
        raise Failure(code)
    body = raw.response["body"]
    if not 200 <= status < 300:
        raise Failure(code_of(body), status, raw.response)
    if isinstance(body, dict) and code != "response_too_large":
        return Reply(status, body)
    if code not in _UNUSABLE:
        raise ValueError(f"a body that is no object is never {code!r}")
    raise Failure(code, status, raw.response)


class OneReply:
    """Answers the one request of a provider that sends only one."""

    def __init__(self, raw: Raw, code_of: Callable[[Any], str]) -> None:
        self._raw = raw
        self._code_of = code_of

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        """The recorded reply; raises Failure as it was."""
        del path, body
        return reply_of(self._raw, self._code_of)
