"""Any service that speaks the System One wire: one request a decision, read strictly.

Nothing is repaired. What is not an answer of the question's type is refused with a code, whereas
numbers that make no good distribution are passed on: judging those is the scoring's part. See
docs/reference/systemone.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from jevexp.backends.connection import Connected, Connection, http_error
from jevexp.backends.rereading import AnswerReader, RawAnswer, RecordedTransport
from jevexp.backends.transport import Failure, HttpPoster, Transport
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Kind, Question, Task
from jevexp.errors import InputError
from jevexp.settings import ModelIdentity, SystemOneBackend

_ENDPOINT = "/v1/systemone"
_MOST_NAMES = 100
# The name that the one question of a request has.
_QUESTION_ID = "decision"


def make(settings: SystemOneBackend, model: ModelIdentity, tasks: Iterable[Task]) -> "SystemOne":
    """The provider, not opened yet."""
    del model, tasks
    return SystemOne(settings)


def reader(settings: SystemOneBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the one recorded answer to a request, by the code that read it first."""
    del settings

    def read(request: Request, raw: RawAnswer) -> Decision:
        return ask(RecordedTransport(raw, http_error), request, description["model"])

    return AnswerReader(read)


class SystemOne(Connected[SystemOneBackend, Connection]):
    """A System One service as a provider; see docs/reference/systemone.md.

    The service is the one at `base_url`, or one that is started by `server.command`.
    """

    def open(self, log_directory: Path) -> Self:
        """Connect to the service, or start it; its log goes to `log_directory`/server.log.

        Raises:
            InputError: it cannot be reached or started, or a secret is not set. Nothing is left
                running.
        """
        try:
            self._open(log_directory)
        except BaseException:
            self.close()
            raise
        return self

    def _open(self, log_directory: Path) -> None:
        settings = self._settings
        self._connection = connection = Connection(settings, log_directory)
        self._facts = {
            "kind": settings.kind,
            "managed": connection.managed,
            "base_url": connection.base_url,
            **facts(connection.transport, connection.url),
        }

    def decide(self, request: Request) -> Decision:
        """Ask once; whatever is no answer to the question is a decision that is not ok."""
        if self._connection is None:
            raise RuntimeError("the backend is not open")
        return ask(self._connection.transport, request, self._facts["model"])


def ask(transport: HttpPoster, request: Request, model: str | None) -> Decision:
    """Put one request to a service that calls itself `model`, or nothing, and read its answer."""
    sent = request.wire()
    # Who is asked, until an answer says who it is by.
    decision = Decision(ok=False, model=model or request.model, request=sent)
    try:
        reply = transport.post(_ENDPOINT, sent)
    except Failure as failure:
        return replace(
            decision,
            error=failure.code,
            status_code=failure.status,
            response=failure.evidence,
        )
    decision = replace(
        decision,
        status_code=reply.status,
        usage=read_usage(reply.body),
        response={"endpoint": _ENDPOINT, "body": reply.body},
    )
    try:
        decision = replace(decision, model=read_model(reply.body))
        probs = read_probs(reply.body, request.question)
    except BadAnswer as bad:
        return replace(decision, error=bad.code)
    return replace(decision, ok=True, probs=probs)


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


class BadAnswer(Exception):
    """The body holds no answer to the question; `code` says what is wrong with it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def read_model(body: Mapping[str, Any]) -> str:
    """The model that answered; raises BadAnswer where the body names none."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadAnswer("bad_answer_model")
    return model


def read_probs(body: Mapping[str, Any], question: Question) -> dict[str, Any]:
    """Label to probability, as returned; for noul both labels from the one number.

    The scalars beside a distribution (`choice`, `score`, `confidence`) are not looked at.

    Raises:
        BadAnswer: there is not exactly one answer, or it is not one to this question.
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
    if question.type is Kind.SCORE and answer.get("legend") != _legend(question):
        raise BadAnswer("bad_answer_legend")
    return _distribution(answer.get("probabilities"), question)


def read_usage(body: Mapping[str, Any]) -> dict[str, int | float | None]:
    """The token counts as reported; null where there is none, or one that counts nothing."""
    usage = body.get("usage")
    reported = usage if isinstance(usage, dict) else {}
    return {name: _count(reported.get(name)) for name in ("input_tokens", "output_tokens")}


def _legend(question: Question) -> dict[str, Any]:
    criteria = question.criteria if isinstance(question.criteria, list) else []
    return {str(level): description for level, description in enumerate(criteria)}


def _distribution(found: Any, question: Question) -> dict[str, Any]:
    # A choice without criteria names no options here; the task knows its labels.
    options = set(question.options)
    if not isinstance(found, dict) or (options and set(found) != options):
        raise BadAnswer("bad_answer_labels")
    return {label: _number(p) for label, p in found.items()}


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadAnswer("bad_answer_number")
    return value


def _count(value: Any) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value >= 0 else None
