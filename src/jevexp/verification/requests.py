"""What a provider was sent: state, model and question, and nothing that gives the answer away."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from jevexp.backends.prompt import message
from jevexp.backends.rereading import RawAnswer, RequestForm
from jevexp.core.decision import Request
from jevexp.core.json import dumps, representable
from jevexp.core.task import GOLD_KEYS, Question, Task
from jevexp.verification.check import Check
from jevexp.verification.context import VerificationContext

WIRE = ("state", "model", "questions")
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


class Requests:
    """The check of what was sent, a task at a time."""

    def __init__(self, context: VerificationContext) -> None:
        self.check = Check(
            "requests", "what was sent is the task's own state and question, without the answer"
        )
        self._form = context.request_form
        self._model = context.manifest.model.requested
        self._frame: str | None = None
        self._unframed = self._own_words = 0

    def look(self, task: Task | None, raw: RawAnswer, name: str) -> Request | None:
        """Check one raw request; `task` is null where the tasks are not here.

        Returns:
            What was asked, where that can be told.
        """
        request = Request.of(task, self._model) if task is not None else None
        with self.check.guarded(name):
            self.check.count += 1
            if isinstance(raw.request, Mapping) and "questions" in raw.request:
                self._look_at(raw.request, request, name)
                request = request or _asked(raw.request)
                self._look_at_sent(raw, request, task, name)
            elif raw.request is not None and self._form is not RequestForm.FOREIGN:
                self.check.fail(name, "request: is no System One body")
            elif raw.record.ok and self._form is not RequestForm.FOREIGN:
                self.check.fail(name, "request: nothing is kept of what was answered")
            elif self._form is RequestForm.FOREIGN:
                self._own_words += 1
        return request

    def finish(self, *, tasks_here: bool) -> Check:
        """The check, once every task was looked at."""
        if not tasks_here:
            self.check.notes.append("not held against the tasks, which are not here")
        if self._unframed:
            self.check.notes.append(
                f"{self._unframed} prompts do not hold the message as it is; what the template "
                "made of it was not compared"
            )
        if self._own_words:
            self.check.notes.append(
                f"of {self._own_words} requests only what a person's own code says it was sent"
            )
        return self.check

    def _look_at(self, raw: Mapping[str, Any], request: Request | None, name: str) -> None:
        allowed = {*WIRE, "sent"} if self._form in _WITH_SENT else {*WIRE}
        # What a person's own code keeps beside it is its own.
        if self._form is not RequestForm.FOREIGN and (extra := sorted(set(raw) - allowed)):
            self.check.fail(name, f"request.{extra[0]}: is no field of a request")
        if set(raw["questions"]) != {"decision"}:
            self.check.fail(name, 'request.questions: has to hold "decision" alone')
        if extra := sorted(set(raw["questions"]["decision"]) - _QUESTION):
            self.check.fail(name, f"request.questions.decision.{extra[0]}: is no field of one")
        if raw["model"] != self._model:
            self.check.fail(name, "request.model: is not the model that the run requested")
        if request is not None:
            found = dumps({field: raw[field] for field in WIRE})
            if found != dumps(representable(request.wire())):
                self.check.fail(name, "request: is not the task's own state and question")

    def _look_at_sent(self, raw: RawAnswer, request: Request, task: Task | None, name: str) -> None:
        if self._form is RequestForm.FOREIGN:
            return
        if self._form is not RequestForm.COMPUTED:
            self._check_private(raw.sent, request, task, name)
            return
        body = raw.sent.get("body")
        prompt = body.get("prompt") if isinstance(body, Mapping) else None
        if not isinstance(prompt, str):
            return
        content = message(request).content.strip()
        before, found, after = prompt.partition(content)
        if not found:
            self._unframed += 1
            return
        frame = _DATE.sub("0", f"{before}\0{after}")
        if self._frame is None:
            self._frame = frame
        elif frame != self._frame:
            self.check.fail(name, "request.sent: the prompt holds more than other tasks' prompts")

    def _check_private(
        self, sent: Any, request: Request | None, task: Task | None, name: str
    ) -> None:
        """Look for what no provider may see in a form that only the provider knows."""
        public = [request.state, request.question.criteria] if request is not None else []
        for key, value in _fields(sent, public):
            if key in _PRIVATE:
                self.check.fail(name, f"request: holds a field {key!r}")
            if task is not None and value == task.id:
                self.check.fail(name, "request: holds the task's id")


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


def _asked(raw: Mapping[str, Any]) -> Request:
    question = Question.model_validate(raw["questions"]["decision"])
    return Request(raw["state"], question, raw["model"])
