"""One decision: ask the provider once, check its answer, keep what was exchanged."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from jevexp.backends.judgevet.exchange import Exchange, failure_of
from jevexp.backends.judgevet.providers import Provider
from jevexp.core.decision import Decision, Request
from jevexp.core.json import representable
from jevexp.core.task import Kind, Question
from jevexp.untrusted.secrets import Secrets


class Decider:
    """Decides through one open provider; nothing that repeats `key` is kept."""

    def __init__(self, provider: Provider, key: str | None) -> None:
        self._provider = provider
        transport = provider.transport
        self._exchanges = transport.exchanges if transport is not None else []
        self._secrets = Secrets([key])

    def decide(self, request: Request) -> Decision:
        """Ask once; every declared error of judgevet's is a decision that is not ok."""
        options = len(request.question.options)
        most = self._provider.most_options
        if not options:
            return Decision(ok=False, model=self._asked(request), error="options_unknown")
        if most is not None and options > most:
            return Decision(ok=False, model=self._asked(request), error="too_many_options")
        return self._ask(request)

    def _ask(self, request: Request) -> Decision:
        from judgevet import JudgevetError

        question = request.question
        response = None
        self._exchanges.clear()
        try:
            response = self._provider.port.system_one(
                request.state, {"decision": typed_question(question)}, self._asked(request)
            )
            probs = read_answer(question, response)
        except WrongAnswer as wrong:
            return self._failure(request, wrong.code, self._status(), response)
        except JudgevetError as error:
            code, status = failure_of(error, self._exchanges[-1] if self._exchanges else None)
            return self._failure(request, code, status, None)
        except Exception as error:
            if self._status() is None:
                raise
            # What a server sends can make the packages raise anything; what came is kept.
            return self._failure(request, "bad_response", self._status(), error)
        model = self._answered_by(response)
        kept, repeats_key = self._received(response)
        if repeats_key or self._secrets.occur_in(model):
            return self._failure(request, "bad_response", self._status(), None)
        receipts = (getattr(response, "receipts", None) or {}).get("decision")
        return Decision(
            ok=True,
            model=model,
            probs=probs,
            status_code=self._status(),
            usage=token_counts(response),
            request=self._sent(request),
            response=kept,
            runtime=dict(receipts) if receipts else None,
        )

    def _failure(self, request: Request, code: str, status: int | None, response: Any) -> Decision:
        kept, _ = self._received(response)
        return Decision(
            ok=False,
            model=self._asked(request),
            error=code,
            status_code=status,
            request=self._sent(request),
            response=kept,
        )

    def _asked(self, request: Request) -> str:
        """The model that the provider is asked for: its own, where it only has one."""
        return self._provider.model or request.model

    def _answered_by(self, response: Any) -> str:
        """The model that the answer names; the server's word where the provider has none."""
        if self._provider.echoes_model and self._telling is not None and self._telling.model:
            return self._telling.model
        named: str = response.model
        return named

    @property
    def _telling(self) -> Exchange | None:
        """The exchange that evidence is about: the last that did not just look something up."""
        asked = [exchange for exchange in self._exchanges if exchange.sent]
        return asked[-1] if asked else None

    def _status(self) -> int | None:
        return self._telling.status if self._telling is not None else None

    def _sent(self, request: Request) -> dict[str, Any]:
        exchange = self._telling
        return request.wire() | ({"sent": exchange.sent_json()} if exchange is not None else {})

    def _received(self, response: Any) -> tuple[dict[str, Any] | None, bool]:
        """The provider's response, and the body that it was made from, as far as there are any.

        And whether the key was in there, which is replaced.
        """
        exchange = self._telling
        kept: dict[str, Any] = {}
        if isinstance(response, Exception):
            kept = {"raised": type(response).__name__}
        elif response is not None:
            kept = response_json(response)
        shown: dict[str, Any] = self._secrets.without(kept)
        repeats_key = shown != kept
        if exchange is not None:
            body, body_repeats_key = exchange.received_json(self._secrets)
            shown |= body
            repeats_key = repeats_key or body_repeats_key
        return shown or None, repeats_key


class WrongAnswer(Exception):
    """A response that holds no answer to the question; `code` says what is wrong with it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def typed_question(question: Question) -> Any:
    """The question as judgevet's class for it; its criteria are left out when null."""
    from judgevet import Choice, Noul, Score

    of_kind = {Kind.NOUL: Noul, Kind.CHOICE: Choice, Kind.SCORE: Score}
    return of_kind[question.type](instructions=question.instructions, criteria=question.criteria)


def read_answer(question: Question, response: Any) -> dict[str, float]:
    """Label to probability, as returned; confidences and the scalar score are never looked at.

    Raises:
        WrongAnswer: no model is named, an answer is missing or too many, of another type, over
            other labels or levels, with another legend, or of something else than numbers.
    """
    if not isinstance(response.model, str) or not response.model:
        raise WrongAnswer("bad_answer_model")
    answers = response.answers
    if not isinstance(answers, Mapping) or set(answers) != {"decision"}:
        raise WrongAnswer("bad_answer_id")
    answer = answers["decision"]
    _check_type(question.type, answer)
    if question.type is Kind.NOUL:
        _check_numbers([answer.noul])
        if not 0 <= answer.noul <= 1:
            raise WrongAnswer("bad_answer_number")
        return {"no": 1 - answer.noul, "yes": answer.noul}
    found = answer.probabilities
    if question.type is Kind.SCORE:
        _check_legend(question, answer.legend)
        found = {str(level): p for level, p in found.items()}
    if set(found) != set(question.options):
        raise WrongAnswer("bad_answer_labels")
    _check_numbers(found.values())
    return {option: found[option] for option in question.options}


def response_json(response: Any) -> dict[str, Any]:
    """What the provider returned, as evidence, whatever it is made of."""
    answers = getattr(response, "answers", None)
    fields = {
        "model": getattr(response, "model", None),
        "usage": _plain(getattr(response, "usage", None)),
        "answers": (
            {name: _plain(answer) for name, answer in answers.items()}
            if isinstance(answers, Mapping)
            else answers
        ),
        "receipts": getattr(response, "receipts", None),
    }
    kept: dict[str, Any] = representable(fields)
    return kept


def token_counts(response: Any) -> dict[str, int | None]:
    """The usage as reported; None for a count that was not."""
    usage = getattr(response, "usage", None)
    counts = {name: getattr(usage, name, None) for name in ("input_tokens", "output_tokens")}
    return {name: count if type(count) is int else None for name, count in counts.items()}


def _check_type(kind: Kind, answer: Any) -> None:
    from judgevet import ChoiceAnswer, NoulAnswer, ScoreAnswer

    of_kind = {Kind.NOUL: NoulAnswer, Kind.CHOICE: ChoiceAnswer, Kind.SCORE: ScoreAnswer}
    if not isinstance(answer, of_kind[kind]):
        raise WrongAnswer("bad_answer_type")


def _check_legend(question: Question, legend: Mapping[Any, Any]) -> None:
    """A level that is no text may come back as the text that Python makes of it."""
    levels = question.criteria if isinstance(question.criteria, list) else []
    if set(legend) != set(range(len(levels))) or any(
        legend[index] not in ((level,) if isinstance(level, str) else (level, str(level)))
        for index, level in enumerate(levels)
    ):
        raise WrongAnswer("bad_answer_legend")


def _check_numbers(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WrongAnswer("bad_answer_number")
        if not math.isfinite(value):
            raise WrongAnswer("bad_answer_number")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"class": type(value).__name__, **asdict(value)}
    return value
