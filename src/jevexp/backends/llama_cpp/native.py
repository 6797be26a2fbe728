"""A decision model's own route, `POST /v1/systemone`: what it can be asked, how it is asked.

The server keeps what it computed for a prompt and reuses it where the next one begins alike. That
moves the numbers, and nothing switches it off on this route; `slots` empties them instead.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from jevexp.backends.llama_cpp.client import tokenize
from jevexp.backends.llama_cpp.slots import Slots
from jevexp.backends.rereading import RawAnswer, RecordedTransport
from jevexp.backends.systemone import ask
from jevexp.backends.transport import Failure, HttpPoster, http_error
from jevexp.core.decision import Decision, Request
from jevexp.core.json import dumps
from jevexp.core.task import Kind, Question, Task

# Goes up with every change of what this route asks, or how its answers are read.
NATIVE_VERSION = "1"
# The most options that a choice may have. Types with one letter for each have fewer; lfm2-d1 takes
# further tokens of its vocabulary, of which only the server knows how many there are.
_MOST_OPTIONS = {"openjev": 52, "lev": 26, "nimble": 26, "pplx-decider": 26}
_MOST_OPTIONS_OF_ANY = 255
_LEVELS = range(2, 11)
# By what the message of a refusal says.
_CODES = {
    "too many options": "too_many_options",
    "no single-token label left": "too_many_options",
    "2 to 10 levels": "bad_levels",
    "increase the physical batch size": "prompt_beyond_ubatch",
    # A question with its options, which kev reads at once.
    "increase the batch size": "prompt_beyond_ubatch",
}
_NOT_ISOLATED = "not_isolated"


class Unaskable(Exception):
    """A question that no model of a type answers; `code` stands in the record."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def check_askable(state: Any, question: Question, decision_type: str | None) -> None:
    """Raise Unaskable where the server would refuse a question; an unknown type takes the most."""
    if state is None:
        raise Unaskable("no_state", "the state is null; decision models want one")
    count = len(question.options)
    most = _MOST_OPTIONS.get(decision_type or "", _MOST_OPTIONS_OF_ANY)
    if question.type is Kind.SCORE and count not in _LEVELS:
        raise Unaskable("bad_levels", f"{count} levels; decision models take 2 to 10")
    if count == 0:
        raise Unaskable("options_unknown", "no options are named in criteria")
    if question.type is Kind.CHOICE and count > most:
        model = f"a model of type {decision_type}" if decision_type else "a decision model"
        raise Unaskable("too_many_options", f"{count} options; {model} takes at most {most}")


def too_long(
    transport: HttpPoster, route: Mapping[str, str], tasks: Sequence[Task], context: int | None
) -> str | None:
    """Which tasks have more tokens in their state than a prompt may have, in one line.

    A template need not show all of a state, so those are asked all the same. Only what has more
    bytes than the context has tokens is given to the server's tokenizer.
    """
    if context is None:
        return None
    counts = {}
    for task in tasks:
        text = task.state if isinstance(task.state, str) else dumps(task.state)
        if len(text.encode()) > context:
            with suppress(Failure):
                counts[task.id] = len(tokenize(transport, route, text))
    over = {task_id: count for task_id, count in counts.items() if count > context}
    if not over:
        return None
    longest = max(over, key=over.__getitem__)
    return (
        f"the states of {len(over)} of {len(tasks)} tasks have more tokens than the context of "
        f"{context}: {longest} has {over[longest]}; raise the server's context"
    )


class NativeRoute:
    """The server as it is asked for a decision, or a recording of it.

    `model` stands in where an answer names none, `decision_type` is None where it is not known.
    With `slots`, each request finds them empty.
    """

    def __init__(
        self,
        transport: HttpPoster,
        model: str | None,
        decision_type: str | None,
        slots: Slots | None = None,
    ) -> None:
        self._transport = transport
        self._model = model
        self._type = decision_type
        self._slots = slots

    def decide(self, request: Request) -> Decision:
        """Ask once; what the server would refuse is not sent."""
        failed = Decision(ok=False, model=self._model or request.model)
        try:
            check_askable(request.state, request.question, self._type)
        except Unaskable as refusal:
            return replace(failed, error=refusal.code)
        if self._slots and not self._slots.empty():
            return replace(failed, error=_NOT_ISOLATED)
        decision = ask(self._transport, self._model, request)
        if decision.status_code is None or 200 <= decision.status_code < 300:
            return decision
        body = decision.response["body"]
        code = _code_of(body) or decision.error
        return replace(decision, error=code, runtime=_token_counts(body))


def is_native(description: Mapping[str, Any]) -> bool:
    """Whether a provider that describes itself like this asked on this route."""
    match description.get("readout"):
        case {"route": "native"}:
            return True
    return False


def read_again(description: Mapping[str, Any], request: Request, raw: RawAnswer) -> Decision | None:
    """What the one recorded answer comes to; None where nothing was asked, for want of a slot."""
    if raw.record.error == _NOT_ISOLATED and raw.request is None:
        return None
    transport = RecordedTransport(raw, http_error)
    return NativeRoute(transport, description["model"], description["decision_type"]).decide(
        request
    )


def _code_of(body: Any) -> str | None:
    match body:
        case {"error": {"type": "exceed_context_size_error"}}:
            return "context_overflow"
        case {"error": {"type": "not_supported_error"}}:
            return "not_a_decision_model"
        case {"error": {"message": str(message)}}:
            return next((code for words, code in _CODES.items() if words in message), None)
    return None


def _token_counts(body: Any) -> dict[str, int] | None:
    """An overflow's tokens: those of the prompt, and those that it may have."""
    match body:
        case {"error": {"n_prompt_tokens": int(prompt), "n_ctx": int(context)}}:
            return {"n_prompt_tokens": prompt, "n_ctx": context}
    return None
