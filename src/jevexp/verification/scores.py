"""Every record against its raw answer: read again, and scored again."""

from collections.abc import Iterator
from typing import Any

from jevexp.backends.rereading import RawAnswer
from jevexp.core.decision import Decision, Request
from jevexp.core.json import dumps, representable
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.scoring import said_null_before, score
from jevexp.verification.check import Check, same, shown
from jevexp.verification.context import VerificationContext

_SCORED = (
    "valid",
    "strict_valid",
    "renormalized",
    "probs",
    "predicted",
    "correct",
    "ordinal_ev",
    "schema_error",
)


class Answers:
    """The check that each record says what its raw answer says."""

    def __init__(self, context: VerificationContext) -> None:
        self.check = Check(
            "answers", "distributions, models, usage and errors, read again from the raw answers"
        )
        self._upstream = context.upstream
        self._unread = 0
        self._reader = context.reader
        if self._reader is None:
            self.check.skip("this version of jevexp does not know the backend's configuration")

    def look(
        self, request: Request | None, raw: RawAnswer, name: str, place: str
    ) -> Decision | None:
        """Read one raw answer again; the decision that it comes to, null where it tells none.

        Args:
            request: what was asked, null where that cannot be told.
            raw: the answer.
            name: the file that it is in.
            place: where its record stands.
        """
        if self._reader is None or request is None or _is_raised(raw):
            self._unread += 1
            return None
        decision: Decision | None = None
        with self.check.guarded(name):
            decision = self._reader.read(request, raw)
            if decision is None:
                self._unread += 1
                return None
            self.check.count += 1
            for field, found, expected in self._compared(decision, raw):
                if not _equal(found, expected):
                    where = place if field in Record.model_fields else "the file"
                    self.check.fail(
                        name, f"{field}: {where} says {shown(found)}, read: {shown(expected)}"
                    )
                    break
        return decision

    def finish(self) -> Check:
        """The check, once every task was looked at."""
        if self._unread and self.check.reason is None:
            line = "raw answers do not determine the distribution; those are only scored again"
            if self.check.count or self.check.failed:
                self.check.notes.append(f"{self._unread} {line}")
            else:
                self.check.skip(f"{self._unread} {line}")
        return self.check

    def _compared(self, decision: Decision, raw: RawAnswer) -> Iterator[tuple[str, Any, Any]]:
        """Field, what was recorded, and what the raw answer comes to."""
        record = raw.record
        yield "ok", record.ok, decision.ok
        yield "error", record.error, decision.error
        yield "status_code", record.status_code, decision.status_code
        returned = representable(decision.probs) if decision.ok else None
        yield "probs_as_returned", record.probs_as_returned, returned
        yield "model", record.model, representable(decision.model)
        yield "probs_source", record.probs_source, str(decision.probs_source)
        yield "usage", record.usage, representable(decision.usage)
        runtime, response = representable(decision.runtime), representable(decision.response)
        if self._upstream and runtime is not None and isinstance(response, dict):
            response = response | {"runtime": runtime}
        yield "runtime", record.runtime, runtime
        yield "request", raw.request, representable(decision.request)
        yield "response", raw.response, response


def _is_raised(raw: RawAnswer) -> bool:
    """Whether the provider raised something, of which nothing but the class is kept."""
    return raw.request is None and raw.response is None and raw.record.probs_source == "unknown"


def _equal(found: Any, expected: Any) -> bool:
    """The same JSON, the order of fields included: the options' order is part of a question."""
    return found is expected or dumps(found) == dumps(expected)


class Scores:
    """The check that each record's verdict follows from its answer and its task."""

    def __init__(self) -> None:
        self.check = Check("scores", "every record scored again: valid, probabilities, correct")

    def look(
        self, task: Task, raw: RawAnswer, decision: Decision | None, file: str, line: int | None
    ) -> None:
        """Score one record again, from the raw answer where that was read."""
        record = raw.record
        with self.check.guarded(file, line=line):
            self.check.count += 1
            verdict = score(task, decision or raw.recorded)
            expected = {field: getattr(verdict, field) for field in _SCORED} | {
                "family": task.family,
                "split": task.split,
                "group": task.group,
                "status": "ok" if record.ok else "failed",
            }
            if said_null_before(task, verdict, record.correct):
                expected["correct"] = None
            for field, value in expected.items():
                found = getattr(record, field)
                if not (_same_probs(found, value) if field == "probs" else same(found, value)):
                    message = f"{field}: {shown(found)}, scored again {shown(value)}"
                    self.check.fail(file, message, line=line)
            if record.ok is not (record.error is None):
                self.check.fail(file, "error: does not go with ok", line=line)
            if not record.ok and record.probs_as_returned is not None:
                self.check.fail(file, "probs_as_returned: of a failed attempt", line=line)


def _same_probs(one: dict[str, float] | None, other: dict[str, float] | None) -> bool:
    if one is None or other is None:
        return one is other
    return list(one) == list(other) and all(same(p, other[label]) for label, p in one.items())
