"""The rules that end a run before its last task."""

from dataclasses import dataclass
from enum import StrEnum

from jevexp.core.decision import ERROR_BODY, STOP_STATUSES
from jevexp.core.record import Record

_IN_BODIES = {f"{ERROR_BODY}_{status}": status for status in STOP_STATUSES}
# The provider read the request and found it unanswerable: a wrong answer, not an outage.
UNPROCESSABLE = 422
MAX_FAILURES_IN_A_ROW = 3


class StopReason(StrEnum):
    """Why a run ended before its last task."""

    CAP_REACHED = "cap_reached"
    OVERCHARGED = "overcharged"
    ACCESS_REFUSED = "access_refused"
    RATE_LIMITED = "rate_limited"
    FAILURES_IN_A_ROW = "failures_in_a_row"
    IDENTITY_CHANGED = "identity_changed"
    LEDGER_UNAVAILABLE = "ledger_unavailable"


@dataclass(frozen=True, slots=True)
class ExpectedModel:
    """The model that every answer of a session has to come from.

    Not a rule of the benchmark: an answer by another model is recorded as it came, and ends the
    run. Where nobody says beforehand who will answer, the first answer decides: an alias that a
    service moves in the middle of a run would mix two models in one number.
    `name` is the model as the provider named it before the first request, None where it did not.
    """

    name: str | None


def stop_status(status: int | None, error: str | None) -> int | None:
    """The status that ends a run after an attempt, or None.

    One that a body tells under a status of success is no rule of the benchmark: it counts as if it
    were the status, and the record keeps the status that came.
    """
    return status if status in STOP_STATUSES else _IN_BODIES.get(error or "")


class StopRules:
    """What the records, in dataset order, say about going on; `expected` None accepts any model.

    `bodies` is whether a status that only a body tells counts, as it does not for the pinned
    harness.
    """

    def __init__(self, expected: ExpectedModel | None, *, bodies: bool = True) -> None:
        self._bodies = bodies
        self._any_model = expected is None
        self._model = expected.name if expected else None
        self._failures = 0

    def after(self, record: Record) -> StopReason | None:
        """Why no further task is to be sent after this record, or None."""
        failed = not record.ok and record.status_code != UNPROCESSABLE
        self._failures = self._failures + 1 if failed else 0
        if status := stop_status(record.status_code, record.error if self._bodies else None):
            return StopReason.RATE_LIMITED if status == 429 else StopReason.ACCESS_REFUSED
        if self._failures >= MAX_FAILURES_IN_A_ROW:
            return StopReason.FAILURES_IN_A_ROW
        # Of a failed attempt nobody knows who would have answered.
        if self._any_model or not record.ok:
            return None
        if self._model is None:
            self._model = record.model
        return None if record.model == self._model else StopReason.IDENTITY_CHANGED
