"""Reading a provider's raw answers again, as verification does: nobody is asked, no code is run.

Each provider gives an `AnswerReader` for its own raw answers. Where it can, it puts a recording of
the exchange in the place of its connection, and decides by the same code that decided at first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from jevexp.backends.bodies import error_body_code, holds_no_answer
from jevexp.backends.transport import Failure, Reply
from jevexp.core.decision import ERROR_BODY, Decision, ProbsSource, Request
from jevexp.core.record import Record

# What a connection can come to without an HTTP status, and with one that promised an answer.
_WITHOUT_STATUS = frozenset({"timeout", "connection_failed", "certificate_refused", "tls_failed"})
_NO_JSON_OBJECT = frozenset({"bad_response", "response_too_large"})
# How numbers without a word in JSON are spelled in records.
_NO_JSON_NUMBER = ("nan", "inf", "-inf")
# Stands in for a label that was outside the label set and is kept nowhere.
FOREIGN_LABEL = "\x00"


class RequestForm(StrEnum):
    """What a provider's raw requests hold."""

    PLAIN = "plain"
    """The System One body and nothing else."""
    EXTENDED = "extended"
    """Beside that body, under "sent", what the provider really sent."""
    COMPUTED = "computed"
    """As extended; what was sent follows from the body, and is compared with what is read."""
    FOREIGN = "foreign"
    """What a person's own code says that it sent; it also chooses reservations and cost bases."""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What a task's raw file holds, and the record that came of it."""

    request: Any
    response: Any
    record: Record

    @property
    def sent(self) -> dict[str, Any]:
        """What a provider adds to the request: what was really sent; empty where nothing was."""
        sent = self.request.get("sent") if isinstance(self.request, Mapping) else None
        return sent if isinstance(sent, dict) else {}

    @property
    def recorded(self) -> Decision:
        """The decision as the record tells it, with the raw request and response."""
        return decision_of(self.record, self.response, request=self.request)


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """What verification has to know of one provider's evidence.

    `read` gives the decision that a raw answer comes to; None where it does not determine one. It
    may raise anything over evidence that is not what the provider leaves. `cost_basis` is the one
    that the provider itself gives, or None.
    """

    read: Callable[[Request, RawAnswer], Decision | None]
    request_form: RequestForm = RequestForm.PLAIN
    cost_basis: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedTransport:
    """Gives the recorded reply to the one request of a provider that sends only one."""

    raw: RawAnswer
    code_of: Callable[[Any], str]

    def post(self, _path: str, _body: dict[str, Any]) -> Reply:
        """The recorded reply; raises Failure as it was."""
        return last_reply(self.raw, self.code_of)


def last_reply(raw: RawAnswer, code_of: Callable[[Any], str]) -> Reply:
    """The last reply of a failed attempt, as the connection gave it.

    Raises Failure where the connection gave none, with the code that follows from status and body,
    and ValueError where no connection ends like that.
    """
    status, code = raw.record.status_code, raw.record.error or ""
    if status is None:
        # Earlier versions kept no reason.
        kept = raw.response is None or set(raw.response) == {"endpoint", "reason"}
        if code not in _WITHOUT_STATUS or not kept:
            raise ValueError(f"no connection ends with {code!r} and without a status")
        raise Failure(code, None, raw.response)
    body = raw.response["body"]
    if not 200 <= status < 300:
        raise Failure(code_of(body), status, raw.response)
    of_error = error_body_code(body, code_of(body))
    # Versions that kept no headers took an error's body for an answer.
    if of_error and ("headers" in raw.response or code.startswith(ERROR_BODY)):
        raise Failure(of_error, status, raw.response)
    refused = code == "bad_response" and isinstance(body, dict) and holds_no_answer(body)
    if isinstance(body, dict) and code != "response_too_large" and not refused:
        return Reply(status, body, raw.response.get("headers", {}))
    if code not in _NO_JSON_OBJECT:
        raise ValueError(f"a body that is no object is never {code!r}")
    raise Failure(code, status, raw.response)


def read_probabilities(raw: RawAnswer, field: str) -> Decision | None:
    """The recorded decision with the distribution in a field of the response.

    None where the response is not one that jevexp itself made of a distribution.
    """
    response = raw.response
    if not raw.record.ok or not isinstance(response, Mapping):
        return None
    if field == "probabilities" and not {field} <= response.keys() <= {field, "model"}:
        return None
    probs = response.get(field)
    return replace(raw.recorded, probs=probs) if isinstance(probs, Mapping) else None


def decision_of(record: Record, response: Any, *, request: Any = None) -> Decision:
    """The provider's answer that became a record, as far as the record tells."""
    probs = record.probs_as_returned
    if probs is not None:
        # A number that JSON has no word for stands there as text.
        probs = {
            label: float(p)
            if record.schema_error == f"prob[{label!r}] out of [0,1]: {p}" and p in _NO_JSON_NUMBER
            else p
            for label, p in probs.items()
        }
    label = None
    if record.probs_source == ProbsSource.LABEL_ONLY and record.schema_error != "abstained":
        label = record.predicted if record.valid else FOREIGN_LABEL
    return Decision(
        ok=record.ok,
        model=record.model,
        probs=probs,
        label=label,
        probs_source=ProbsSource(record.probs_source),
        error=record.error,
        status_code=record.status_code,
        usage=record.usage,
        request=request,
        response=response,
        runtime=record.runtime,
    )
