"""Any service that speaks the System One wire: one request a decision, read strictly.

Nothing is repaired. What is not an answer of the question's type is refused with a code, whereas
numbers that make no good distribution are passed on: judging those is the scoring's part. See
docs/reference/systemone.md.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from jevexp.backends.bodies import COST_HEADER, REQUEST_ID_HEADERS
from jevexp.backends.connection import Connected, connect, unusable
from jevexp.backends.readout import SUM_ERROR
from jevexp.backends.rereading import AnswerReader, RecordedTransport, RequestForm
from jevexp.backends.served_model import observed_at
from jevexp.backends.transport import (
    Failure,
    HttpPoster,
    Reply,
    Transport,
    http_error,
    is_number,
    name_or_none,
)
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Kind, Question
from jevexp.settings import SystemOneBackend
from jevexp.settings.backends import DecisionService

_MOST_NAMES = 100
# The name that the one question of a request has.
_QUESTION_ID = "decision"


class Wire:
    """How a service is asked for a decision, and where the parts of its answer are.

    `path` is where requests go; `envelope` is the JSON pointer to the answer inside of a body.
    """

    def __init__(self, path: str = "/v1/systemone", envelope: str | None = None) -> None:
        self.path = path
        self._envelope = envelope

    def body(self, request: Request) -> dict[str, Any]:
        """The body of a request."""
        return request.wire()

    def evidence(self, request: Request, body: dict[str, Any]) -> dict[str, Any]:
        """What is kept of a request: the System One body, and beside it another that was sent."""
        plain = request.wire()
        return plain if body == plain else plain | {"sent": {"endpoint": self.path, "body": body}}

    def unwrap(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer in a body; raises BadAnswer: there is none."""
        value: Any = body
        for part in self._envelope.split("/")[1:] if self._envelope else ():
            name = part.replace("~1", "/").replace("~0", "~")
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, dict):
            return value
        raise BadAnswer("bad_envelope")

    def probs(self, answer: Mapping[str, Any], question: Question) -> dict[str, Any]:
        """Label to probability; raises BadAnswer as `read_probs` does."""
        return read_probs(answer, question)


def reader(settings: SystemOneBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the one recorded answer to a request, by the code that read it first."""
    return read_by(Wire(settings.path, settings.envelope), description)


def read_by(
    wire: Wire, description: Mapping[str, Any], request_form: RequestForm = RequestForm.PLAIN
) -> AnswerReader:
    """A reader of the recorded answers of a service that describes itself like this."""
    return AnswerReader(
        lambda request, raw: ask(
            RecordedTransport(raw, http_error), description["model"], request, wire
        ),
        request_form=request_form,
    )


AnyService = TypeVar("AnyService", bound=DecisionService)


class Service(Connected[AnyService]):
    """A service that takes one request a decision, as a provider.

    It is the one at `base_url`, or one that is started by `server.command`.
    """

    def _wire(self) -> Wire:
        raise NotImplementedError

    def _open(self, log_directory: Path) -> None:
        connection = self._hold(connect(self._settings, log_directory))
        wire, started = self._wire(), connection.server is not None
        self._facts |= facts(
            connection.transport, connection.url, wire.path, self._model.alias, started=started
        )
        if "served_by" in self._facts:
            self._facts["warnings"] = [
                "a llama.cpp server that is not made to forget: an answer may depend on the tasks "
                "before it; backend=llama_cpp empties its slots"
            ]
        self._ask = partial(ask, connection.transport, self._facts["model"], wire=wire)


class SystemOne(Service[SystemOneBackend]):
    """A System One service; see docs/reference/systemone.md."""

    def _wire(self) -> Wire:
        return Wire(self._settings.path, self._settings.envelope)


make = SystemOne
SYSTEM_ONE = Wire()


def ask(
    transport: HttpPoster, model: str | None, request: Request, wire: Wire = SYSTEM_ONE
) -> Decision:
    """Put one request to a service that calls itself `model`, or nothing, and read its answer."""
    body = wire.body(request)
    # The model that is asked, until an answer says which one it is by.
    decision = Decision(
        ok=False, model=model or request.model, request=wire.evidence(request, body)
    )
    try:
        reply = transport.post(wire.path, body)
        decision = replace(decision, status_code=reply.status, response=reply.evidence(wire.path))
        answer = wire.unwrap(reply.body)
        decision = replace(
            decision, usage=read_usage(answer, reply.headers), runtime=read_runtime(answer, reply)
        )
        answering = name_or_none(answer.get("model"))
        if answering is None:
            raise BadAnswer("bad_answer_model")
        decision = replace(decision, model=answering)
        return replace(decision, ok=True, probs=wire.probs(answer, request.question))
    except Failure as failure:
        return replace(
            decision, error=failure.code, status_code=failure.status, response=failure.evidence
        )
    except BadAnswer as bad:
        return replace(decision, error=str(bad))


def facts(
    transport: Transport, url: str, path: str, alias: str, *, started: bool
) -> dict[str, Any]:
    """What the list of models says, and of a server that was started here its `/health`.

    Elsewhere `/health` may cost money: gateways ask every configured model there. `model` is the
    one that `/health` names as its own. `models` are the names that may be asked for, which do not
    tell who will answer: services list aliases there. A llama.cpp server says more, and which model
    answers. What nothing is said of is null. Raises InputError where nobody answers.
    """
    health = _look(transport, "/health", url) if started else {}
    listed = _look(transport, f"{path.rpartition('/')[0]}/models", url)
    names = set()
    # As TypeSafe's service lists them, and as OpenAI's does.
    for key, field in (("models", "name"), ("data", "id")):
        entries = listed.get(key)
        for entry in entries if isinstance(entries, list) else ():
            names.add(name_or_none(entry.get(field)) if isinstance(entry, dict) else None)
    return {
        "model": name_or_none(health.get("model")),
        "version": name_or_none(health.get("version")),
        "models": sorted(name for name in names if name)[:_MOST_NAMES] or None,
        **observed_at(transport, listed, alias),
    }


def _look(transport: Transport, path: str, url: str) -> Mapping[str, Any]:
    try:
        return transport.get(path).body
    except Failure as failure:
        # Services hide these; whether the key is good is seen at the first question.
        if failure.status is not None:
            return {}
        todo = "start a server there, or set backend.base_url=URL"
        raise unusable(failure, url, "a decision service", todo, key_env=None) from failure


class BadAnswer(Exception):
    """The body holds no answer to the question; the message is a code for what is wrong with it."""


def read_probs(body: Mapping[str, Any], question: Question) -> dict[str, Any]:
    """Label to probability, as returned; for noul both labels from the one number.

    The scalars beside a distribution (`choice`, `score`, `confidence`) are not looked at. Raises
    BadAnswer where there is not exactly one answer, or it is not one to this question.
    """
    answers = body.get("answers")
    if not isinstance(answers, dict) or set(answers) != {_QUESTION_ID}:
        raise BadAnswer("bad_answer_id")
    answer = answers[_QUESTION_ID]
    if not isinstance(answer, dict) or answer.get("type") != question.type.value:
        raise BadAnswer("bad_answer_type")
    if question.type is Kind.NOUL:
        return no_and_yes(answer.get("noul"))
    if question.type is Kind.SCORE:
        levels = question.criteria if isinstance(question.criteria, list) else []
        if answer.get("legend") != {str(level): text for level, text in enumerate(levels)}:
            raise BadAnswer("bad_answer_legend")
    probabilities = answer.get("probabilities")
    # A choice without criteria names no options here; the task knows its labels.
    options = set(question.options)
    if not isinstance(probabilities, dict) or (options and set(probabilities) != options):
        raise BadAnswer("bad_answer_labels")
    return {label: number_of(p) for label, p in probabilities.items()}


def no_and_yes(value: Any) -> dict[str, int | float]:
    """Both labels' probabilities from that of yes; raises BadAnswer: it is none."""
    p = number_of(value)
    if not 0 <= p <= 1:
        raise BadAnswer("bad_answer_number")
    return {"no": 1 - p, "yes": p}


def read_usage(
    answer: Mapping[str, Any], headers: Mapping[str, str]
) -> dict[str, int | float | None]:
    """The token counts as reported, null where there is none, and `cost` in US dollars, if told.

    Gateways tell the cost in a header instead.
    """
    usage = answer.get("usage")
    reported = usage if isinstance(usage, dict) else {}
    counts = {name: _amount(reported.get(name)) for name in ("input_tokens", "output_tokens")}
    cost = _amount(reported.get("cost"))
    if cost is None:
        with suppress(ValueError):
            cost = _amount(float(headers[COST_HEADER])) if COST_HEADER in headers else None
    return counts if cost is None else {**counts, "cost": cost}


def read_runtime(answer: Mapping[str, Any], reply: Reply) -> dict[str, Any] | None:
    """What an answer says about how it came to be; None where it says nothing.

    `off_option_mass` is the probability outside the options, of which services tell the rest;
    `truncated` and `dropped_tokens` say that not all of the state was read; `request_id` and
    `provider` are whom to ask about it.
    """
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    dropped = _amount(usage.get("state_tokens_dropped"))
    cut = usage.get("truncated") is True or bool(dropped)
    request_ids = [answer.get("id"), *map(reply.headers.get, REQUEST_ID_HEADERS)]
    runtime = {
        "off_option_mass": _off_option_mass(answer),
        "truncated": True if cut else None,
        "dropped_tokens": dropped if cut else None,
        "request_id": next(filter(None, map(name_or_none, request_ids)), None),
        "provider": name_or_none(answer.get("provider")),
    }
    return {name: value for name, value in runtime.items() if value is not None} or None


def _off_option_mass(answer: Mapping[str, Any]) -> float | None:
    """From the mass of the labels, which stands in the diagnostics or in the answer itself."""
    for place in ("diagnostics", "answers"):
        match answer.get(place):
            case {"decision": {"label_mass": mass}} | [{"label_mass": mass}] if is_number(mass):
                # Rounding may carry a sum past 1; further past, it is none of one distribution.
                return max(0.0, 1.0 - mass) if 0 <= mass <= 1 + SUM_ERROR else None
    return None


def _amount(value: Any) -> int | float | None:
    return value if is_number(value) and 0 <= value < math.inf else None


def number_of(value: Any) -> int | float:
    """A probability as returned, whatever its size; raises BadAnswer: it is no number."""
    if is_number(value):
        return value
    raise BadAnswer("bad_answer_number")
