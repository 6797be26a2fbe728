"""Every record against its raw file: what was sent, what came back, its score and its cost."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jevexp.backends.prompt import message
from jevexp.backends.rereading import RawAnswer, RequestForm
from jevexp.core.decision import Decision, Request
from jevexp.core.json import dumps, representable
from jevexp.core.record import Record
from jevexp.core.task import GOLD_KEYS, Question, Task
from jevexp.harness.runner import Tariff
from jevexp.harness.scoring import said_null_before, score
from jevexp.verification.check import Check, same, shown
from jevexp.verification.context import VerificationContext

_WIRE = ("state", "model", "questions")
_QUESTION = frozenset({"type", "instructions", "criteria"})
# Forms of a request that hold what was really sent beside the System One body.
_WITH_SENT = frozenset({RequestForm.EXTENDED, RequestForm.COMPUTED})
_PRIVATE = GOLD_KEYS | {"family", "group", "provenance", "split", "task_id"}
# A chat template may tell the date.
_DATE = re.compile(
    r"\d\d+|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)"
    r"[a-z]*\b|\b[ap]m\b",
    re.IGNORECASE,
)
_SCORED = ("valid", "strict_valid", "renormalized", "probs", "predicted", "correct", "ordinal_ev",
           "schema_error")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A record, its task where that is here, and where it stands; held answers have no line."""

    record: Record
    task: Task | None
    file: str
    line: int | None

    @property
    def place(self) -> str:
        """File and line."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


class AnswerChecks:
    """The checks of single answers: what was sent, what came back, its score and its cost."""

    def __init__(self, context: VerificationContext) -> None:
        self.requests = Check(
            "requests", "what was sent is the task's own state and question, without the answer"
        )
        self.answers = Check(
            "answers", "distributions, models, usage and errors, read again from the raw answers"
        )
        self.scores = Check("scores", "every record scored again: valid, probabilities, correct")
        self.costs = Check("costs", "cost from usage and tariff, charge from cost and reservation")
        if context.tasks is None:
            self.requests.notes.append("not held against the tasks, which are not here")
            self.scores.reason = "tasks are not here"
        self._reader = context.reader
        if self._reader is None:
            self.answers.reason = "this version of jevexp does not know the backend's configuration"
        self._form = self._reader.request_form if self._reader else RequestForm.PLAIN
        self._context = context
        self._upstream = context.manifest.harness.name == "upstream"
        self._model = context.manifest.model.requested
        self._frame: str | None = None
        self._unframed = self._own_words = self._unread = 0

    def look(self, entry: Entry, raw: RawAnswer, name: str) -> None:
        """Hold a record against its raw answer, which is in the file `name`."""
        request = self._look_at_request(entry.task, raw, name)
        decision = self._read_again(request, raw, name, entry.place)
        if entry.task is not None:
            self._score_again(entry.task, entry, raw, decision)

    def finish(self) -> list[Check]:
        """The checks, once every answer was looked at."""
        if self._unframed:
            self.requests.notes.append(
                f"{self._unframed} prompts do not hold the message as it is; what the template "
                "made of it was not compared"
            )
        if self._own_words:
            self.requests.notes.append(
                f"of {self._own_words} requests only what a person's own code says it was sent"
            )
        if self._unread and self.answers.reason is None:
            note = (
                f"{self._unread} raw answers do not determine the distribution; those are only "
                "scored again"
            )
            if self.answers.count or self.answers.failed:
                self.answers.notes.append(note)
            else:
                self.answers.reason = note
        return [self.requests, self.answers, self.scores, self.costs]

    def _look_at_request(self, task: Task | None, raw: RawAnswer, name: str) -> Request | None:
        """Check what was sent, and give it back where that can be told."""
        request = Request.of(task, self._model) if task is not None else None
        with self.requests.guarded(name):
            self.requests.count += 1
            if isinstance(raw.request, Mapping) and "questions" in raw.request:
                self._look_at_body(raw.request, request, name)
                if request is None:
                    question = Question.model_validate(raw.request["questions"]["decision"])
                    request = Request(raw.request["state"], question, raw.request["model"])
                if self._form is RequestForm.COMPUTED:
                    self._look_at_prompt(raw, request, name)
                elif self._form is not RequestForm.FOREIGN:
                    self._look_at_sent(raw, request, task, name)
            elif self._form is RequestForm.FOREIGN:
                self._own_words += 1
            elif raw.request is not None:
                self.requests.fail(name, "request: is no System One body")
            elif raw.record.ok:
                self.requests.fail(name, "request: nothing is kept of what was answered")
        return request

    def _look_at_body(self, body: Mapping[str, Any], request: Request | None, name: str) -> None:
        allowed = {*_WIRE, "sent"} if self._form in _WITH_SENT else {*_WIRE}
        # A person's own code may keep other fields beside these.
        if self._form is not RequestForm.FOREIGN and (extra := sorted(set(body) - allowed)):
            self.requests.fail(name, f"request.{extra[0]}: is no field of a request")
        if set(body["questions"]) != {"decision"}:
            self.requests.fail(name, 'request.questions: has to hold "decision" alone')
        if extra := sorted(set(body["questions"]["decision"]) - _QUESTION):
            self.requests.fail(name, f"request.questions.decision.{extra[0]}: is no field of one")
        if body["model"] != self._model:
            self.requests.fail(name, "request.model: is not the model that the run requested")
        if request is not None:
            stored = dumps({field: body[field] for field in _WIRE})
            if stored != dumps(representable(request.wire())):
                self.requests.fail(name, "request: is not the task's own state and question")

    def _look_at_prompt(self, raw: RawAnswer, request: Request, name: str) -> None:
        """Hold what a template put around the message against what it put around others."""
        body = raw.sent.get("body")
        prompt = body.get("prompt") if isinstance(body, Mapping) else None
        if not isinstance(prompt, str):
            return
        before, content, after = prompt.partition(message(request).content.strip())
        if not content:
            self._unframed += 1
            return
        frame = _DATE.sub("0", f"{before}\0{after}")
        self._frame = self._frame or frame
        if frame != self._frame:
            self.requests.fail(
                name, "request.sent: the prompt holds more than other tasks' prompts"
            )

    def _look_at_sent(self, raw: RawAnswer, request: Request, task: Task | None, name: str) -> None:
        """Look for what no provider may see in a form that only the provider knows."""
        for key, value in _fields(raw.sent, [request.state, request.question.criteria]):
            if key in _PRIVATE:
                self.requests.fail(name, f"request: holds a field {key!r}")
            if task is not None and value == task.id:
                self.requests.fail(name, "request: holds the task's id")

    def _read_again(
        self, request: Request | None, raw: RawAnswer, name: str, place: str
    ) -> Decision | None:
        """The decision that a raw answer comes to; null where it tells none."""
        decision: Decision | None = None
        # Where the provider raised something, nothing but its class is kept.
        raised = raw.request is None and raw.response is None
        raised = raised and raw.record.probs_source == "unknown"
        with self.answers.guarded(name):
            if self._reader is not None and request is not None and not raised:
                decision = self._reader.read(request, raw)
            if decision is None:
                self._unread += 1
                return None
            self.answers.count += 1
            for field, recorded, read in self._compared(decision, raw):
                # The same JSON, the order of fields included: it is part of a question.
                if recorded is not read and dumps(recorded) != dumps(read):
                    where = place if field in Record.model_fields else "the file"
                    message = f"{field}: {where} says {shown(recorded)}, read: {shown(read)}"
                    self.answers.fail(name, message)
                    break
        return decision

    def _compared(self, decision: Decision, raw: RawAnswer) -> Iterator[tuple[str, Any, Any]]:
        """Field, what was recorded, and what the raw answer comes to."""
        record = raw.record
        yield "ok", record.ok, decision.ok
        yield "error", record.error, decision.error
        yield "status_code", record.status_code, decision.status_code
        probs = representable(decision.probs) if decision.ok else None
        yield "probs_as_returned", record.probs_as_returned, probs
        yield "model", record.model, representable(decision.model)
        yield "probs_source", record.probs_source, str(decision.probs_source)
        yield "usage", record.usage, representable(decision.usage)
        runtime, response = representable(decision.runtime), representable(decision.response)
        if self._upstream and runtime is not None and isinstance(response, dict):
            response = response | {"runtime": runtime}
        if isinstance(response, dict) and "headers" not in (raw.response or {}):
            # Earlier versions kept none.
            response = {name: part for name, part in response.items() if name != "headers"}
        yield "runtime", record.runtime, runtime
        yield "request", raw.request, representable(decision.request)
        yield "response", raw.response, response

    def _score_again(
        self, task: Task, entry: Entry, raw: RawAnswer, decision: Decision | None
    ) -> None:
        """From the raw answer, where that was read."""
        record, check = entry.record, self.scores
        with check.guarded(entry.file, line=entry.line):
            verdict = score(task, decision or raw.recorded)
            expected = {field: getattr(verdict, field) for field in _SCORED} | {
                "family": task.family,
                "split": task.split,
                "group": task.group,
                "status": "ok" if record.ok else "failed",
            }
            if said_null_before(task, verdict, record.correct):
                expected["correct"] = None
            _compare(check, entry, expected, "scored again")
            if record.ok is not (record.error is None):
                check.fail(entry.file, "error: does not go with ok", line=entry.line)
            if not record.ok and record.probs_as_returned is not None:
                check.fail(entry.file, "probs_as_returned: of a failed attempt", line=entry.line)

    def price(self, entry: Entry) -> None:
        """Price a record again; an adopted one was reserved for under the earlier run's caps."""
        record, resolved = entry.record, self._context.resolved
        with self.costs.guarded(entry.file, line=entry.line):
            pricing, reserved_usd = resolved["pricing"], resolved["caps"]["reserve_usd"]
            basis = (self._reader.cost_basis if self._reader else None) or pricing["basis"]
            if self._context.foreign_amounts:
                # A person's own backend may know another basis, and reserve more.
                derived = record.cost_basis == "derived_usage_times_tariff"
                basis = None if derived else record.cost_basis
                reserved_usd = max(record.reserved_usd, reserved_usd)
            tariff = Tariff(pricing["input_per_m"], pricing["output_per_m"], basis)
            decision = Decision(ok=record.ok, model=record.model, usage=record.usage)
            cost_usd, cost_basis = tariff.cost(decision)
            charged_usd = record.reserved_usd if cost_usd is None else cost_usd
            # An answer that has no line yet was given in this run.
            if entry.line is not None and record.task_id in self._context.adopted:
                reserved_usd = record.reserved_usd
                # In full, where the process was killed before the answer was settled.
                if record.charged_usd == reserved_usd:
                    charged_usd = reserved_usd
            expected = {
                "cost_usd": cost_usd,
                "cost_basis": cost_basis,
                "charged_usd": charged_usd,
                "reserved_usd": reserved_usd,
            }
            _compare(self.costs, entry, expected, "computed")


def _fields(value: Any, public: list[Any]) -> Iterator[tuple[str, Any]]:
    """Every field of every object in `value`, but for what is public."""
    if value in public:
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield key, part
            yield from _fields(part, public)
    elif isinstance(value, list):
        for part in value:
            yield from _fields(part, public)


def _compare(check: Check, entry: Entry, expected: Mapping[str, Any], how: str) -> None:
    check.count += 1
    for field, value in expected.items():
        recorded = getattr(entry.record, field)
        if not same(recorded, value):
            message = f"{field}: {shown(recorded)}, {how} {shown(value)}"
            check.fail(entry.file, message, line=entry.line)
