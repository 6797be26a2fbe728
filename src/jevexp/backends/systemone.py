"""Any service that speaks the System One wire: one request a decision, read strictly.

Nothing is repaired. What is not an answer of the question's type is refused with a code, whereas
numbers that make no good distribution are passed on: judging those is the scoring's part. See
docs/reference/systemone.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from jevexp.backends.connection import Connected, connect, unusable
from jevexp.backends.rereading import AnswerReader, RecordedTransport
from jevexp.backends.served_model import observed_at
from jevexp.backends.transport import (
    Failure,
    HttpPoster,
    Transport,
    http_error,
    is_number,
    name_or_none,
)
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Kind, Question
from jevexp.settings import SystemOneBackend

_ENDPOINT = "/v1/systemone"
_MOST_NAMES = 100
# The name that the one question of a request has.
_QUESTION_ID = "decision"


def reader(settings: SystemOneBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the one recorded answer to a request, by the code that read it first."""
    del settings
    return AnswerReader(
        lambda request, raw: ask(RecordedTransport(raw, http_error), description["model"], request)
    )


class SystemOne(Connected[SystemOneBackend]):
    """A System One service as a provider; see docs/reference/systemone.md.

    The service is the one at `base_url`, or one that is started by `server.command`.
    """

    def _open(self, log_directory: Path) -> None:
        connection = self._hold(connect(self._settings, log_directory))
        self._facts |= facts(connection.transport, connection.url, self._model.alias)
        if "served_by" in self._facts:
            self._facts["warnings"] = [
                "a llama.cpp server that is not made to forget: an answer may depend on the tasks "
                "before it; backend=llama_cpp empties its slots"
            ]
        self._ask = partial(ask, connection.transport, self._facts["model"])


make = SystemOne


def ask(transport: HttpPoster, model: str | None, request: Request) -> Decision:
    """Put one request to a service that calls itself `model`, or nothing, and read its answer."""
    body = request.wire()
    # The model that is asked, until an answer says which one it is by.
    decision = Decision(ok=False, model=model or request.model, request=body)
    try:
        reply = transport.post(_ENDPOINT, body)
        decision = replace(
            decision,
            status_code=reply.status,
            usage=read_usage(reply.body),
            response=reply.evidence(_ENDPOINT),
        )
        answering = name_or_none(reply.body.get("model"))
        if answering is None:
            raise BadAnswer("bad_answer_model")
        decision = replace(decision, model=answering)
        return replace(decision, ok=True, probs=read_probs(reply.body, request.question))
    except Failure as failure:
        return replace(
            decision, error=failure.code, status_code=failure.status, response=failure.evidence
        )
    except BadAnswer as bad:
        return replace(decision, error=str(bad))


def facts(transport: Transport, url: str, alias: str) -> dict[str, Any]:
    """What `/health` and `/v1/models` say; null for what they do not.

    `model` is the one that `/health` names as its own. `models` are the names that may be asked
    for, which do not tell who will answer: services list aliases there. A llama.cpp server says
    more, and which model answers. Raises InputError where nobody answers.
    """
    health = _look(transport, "/health", url)
    listed = _look(transport, "/v1/models", url)
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
        raise unusable(failure, url, "a System One service", todo, key_env=None) from failure


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
        p = _number(answer.get("noul"))
        if not 0 <= p <= 1:
            raise BadAnswer("bad_answer_number")
        return {"no": 1 - p, "yes": p}
    if question.type is Kind.SCORE:
        levels = question.criteria if isinstance(question.criteria, list) else []
        if answer.get("legend") != {str(level): text for level, text in enumerate(levels)}:
            raise BadAnswer("bad_answer_legend")
    probabilities = answer.get("probabilities")
    # A choice without criteria names no options here; the task knows its labels.
    options = set(question.options)
    if not isinstance(probabilities, dict) or (options and set(probabilities) != options):
        raise BadAnswer("bad_answer_labels")
    return {label: _number(p) for label, p in probabilities.items()}


def read_usage(body: Mapping[str, Any]) -> dict[str, int | float | None]:
    """The token counts as reported; null where there is none, or one that counts nothing."""
    usage = body.get("usage")
    reported = usage if isinstance(usage, dict) else {}
    counts = {name: reported.get(name) for name in ("input_tokens", "output_tokens")}
    return {
        name: count if is_number(count) and count >= 0 else None for name, count in counts.items()
    }


def _number(value: Any) -> int | float:
    if is_number(value):
        return value
    raise BadAnswer("bad_answer_number")
