"""Any judgevet provider: its own HTTP adapter, a typevet session, or one from a factory."""

import math
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, is_dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jevexp.backends.connection import OpenedBackend
from jevexp.backends.judgevet.exchange import Exchange, failure_of
from jevexp.backends.judgevet.providers import PROVIDERS, Provider, environment
from jevexp.backends.rereading import AnswerReader, RawAnswer, RequestForm
from jevexp.backends.served_model import observed_at
from jevexp.backends.systemone import BadAnswer
from jevexp.backends.transport import Failure, Transport, is_number
from jevexp.core.decision import Decision, Request
from jevexp.core.json import representable
from jevexp.core.task import Kind, Question, Task
from jevexp.errors import InputError
from jevexp.settings import JudgevetBackend, ModelIdentity
from jevexp.settings.base import read_secret
from jevexp.untrusted.secrets import Secrets

PACKAGES = ("judgevet", "typevet")
_OLDEST_PYTHON = (3, 12)


def reader(settings: JudgevetBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the distribution in the answer that judgevet returned; needs none of its packages."""
    del settings, description
    return AnswerReader(_read_again, request_form=RequestForm.EXTENDED)


def _read_again(request: Request, raw: RawAnswer) -> Decision | None:
    probs: dict[str, Any]
    match raw.response:
        case {"answers": {"decision": Mapping() as answer}} if raw.record.ok:
            if request.question.type is Kind.NOUL:
                probs = {"no": 1 - answer["noul"], "yes": answer["noul"]}
            else:
                labels = request.question.options
                probs = {label: answer["probabilities"][label] for label in labels}
            return replace(raw.recorded, probs=probs)
    return None


def require_packages() -> None:
    """Raise InputError where this Python is too old, or a package of the bridge is missing."""
    running = tuple(sys.version_info[:3])
    if running < _OLDEST_PYTHON:
        raise InputError(
            "backend.kind: judgevet needs Python 3.12 or newer, this is "
            f"{'.'.join(map(str, running))}; install jevexp[bridge] there, or choose another "
            "backend"
        )
    for package in PACKAGES:
        if find_spec(package) is None:
            raise InputError(
                f"backend.kind: the package {package} is not installed; "
                "pip install 'jevexp[bridge]'"
            )


class Judgevet(OpenedBackend[JudgevetBackend]):
    """Any judgevet provider; see docs/reference/judgevet.md."""

    def __init__(
        self, settings: JudgevetBackend, model: ModelIdentity, tasks: Iterable[Task] = ()
    ) -> None:
        require_packages()
        super().__init__(settings, model, tasks)

    def _open(self, log_directory: Path) -> None:
        del log_directory
        settings, alias = self._settings, self._model.alias
        key = read_secret(settings.key_env, "backend.key_env") if settings.has_address else None
        opening = PROVIDERS[settings.provider](settings, alias, key)
        provider = self._resources.enter_context(opening)
        versions = {package: version(package) for package in PACKAGES}
        # What decides how an answer is read: typevet composes the prompts itself.
        readout: dict[str, Any] = {"provider": settings.provider}
        if settings.provider == "factory":
            readout["factory"] = settings.factory
        is_session = settings.provider == "typevet"
        served = {}
        if is_session and settings.typevet.backend == "llama_cpp":
            served = _observed(settings, alias, key)
        if is_session:
            session = settings.typevet
            readout |= {"session": session.backend, "framing": session.framing}
            readout["version"] = versions["typevet"]
        self._facts = {
            "kind": settings.kind,
            "provider": settings.provider,
            "model": provider.model,
            "base_url": settings.base_url if settings.has_address else None,
            "packages": versions,
            # The session's variables, without its key.
            "environment": environment(settings, alias) if is_session else None,
            "readout": readout,
            **served,
        }
        self._ask = Decider(provider, key).decide


make = Judgevet


def _observed(settings: JudgevetBackend, alias: str, key: str | None) -> dict[str, Any]:
    """What the llama.cpp server behind a session says of its model; nothing where it is none."""
    url, timeout = settings.base_url or "", settings.timeout_s
    with closing(Transport(url, key, timeout, timeout)) as transport, suppress(Failure):
        server_facts = observed_at(transport, transport.get("/v1/models").body, alias)
        if "decisions" in (server_facts.get("output_modalities") or ()):
            warning = "a decision model, asked by typevet: another prompt, and no temperatures"
            server_facts["warnings"] = [warning]
        return server_facts
    return {}


class Decider:
    """Decides through one open provider; nothing that repeats `key` is kept."""

    def __init__(self, provider: Provider, key: str | None) -> None:
        self._provider = provider
        self._exchanges = provider.transport.exchanges if provider.transport else []
        self._secrets = Secrets([key])

    def decide(self, request: Request) -> Decision:
        """Ask once; every declared error of judgevet's is a decision that is not ok."""
        from judgevet import JudgevetError

        question, most = request.question, self._provider.most_options
        # The provider's own model, where it has only one.
        model = self._provider.model or request.model
        failure = Decision(ok=False, model=model)
        if not question.options:
            return replace(failure, error="options_unknown")
        if most is not None and len(question.options) > most:
            return replace(failure, error="too_many_options")
        response: Any = None
        self._exchanges.clear()
        try:
            response = self._provider.port.system_one(
                request.state, {"decision": typed_question(question)}, model
            )
            probs = read_answer(question, response)
        except BadAnswer as bad:
            decision = replace(failure, error=str(bad), status_code=self._status)
        except JudgevetError as declared:
            code, status = failure_of(declared, self._exchanges[-1] if self._exchanges else None)
            decision, response = replace(failure, error=code, status_code=status), None
        except Exception as raised:
            if self._status is None:
                raise
            # What a server sends can make the packages raise anything; what came is kept.
            decision = replace(failure, error="bad_response", status_code=self._status)
            response = raised
        else:
            decision = self._answer(response, probs)
        if not decision.ok and self._telling and (of_error := self._telling.error_code):
            decision = replace(decision, error=of_error)
        evidence, repeats_key = self._received(response)
        if decision.ok and (repeats_key or self._secrets.occur_in(decision.model)):
            decision = replace(failure, error="bad_response", status_code=self._status)
            evidence, _ = self._received(None)
        sent = {"sent": self._telling.sent_json()} if self._telling else {}
        return replace(decision, request=request.wire() | sent, response=evidence)

    def _answer(self, response: Any, probs: dict[str, float]) -> Decision:
        # The server's word where the provider only repeats the model that it was asked for.
        telling = self._telling if self._provider.echoes_model else None
        receipts = (getattr(response, "receipts", None) or {}).get("decision")
        usage = getattr(response, "usage", None)
        counts = {name: getattr(usage, name, None) for name in ("input_tokens", "output_tokens")}
        return Decision(
            ok=True,
            model=(telling.model if telling else None) or response.model,
            probs=probs,
            status_code=self._status,
            usage={name: n if type(n) is int else None for name, n in counts.items()},
            runtime=dict(receipts) if receipts else None,
        )

    @property
    def _telling(self) -> Exchange | None:
        """The exchange that evidence is about: the last that did not just look something up."""
        return next((exchange for exchange in reversed(self._exchanges) if exchange.sent), None)

    @property
    def _status(self) -> int | None:
        return self._telling.status if self._telling else None

    def _received(self, response: Any) -> tuple[dict[str, Any] | None, bool]:
        """The response, and the body it was made from, without the key; and whether it had it."""
        kept: dict[str, Any] = {}
        if isinstance(response, Exception):
            kept = {"raised": type(response).__name__}
        elif response is not None:
            kept = response_json(response)
        shown: dict[str, Any] = self._secrets.without(kept)
        repeats_key = shown != kept
        if exchange := self._telling:
            body, body_repeats_key = exchange.received_json(self._secrets)
            shown |= body
            repeats_key = repeats_key or body_repeats_key
        return shown or None, repeats_key


def typed_question(question: Question) -> Any:
    """The question as judgevet's class for it; its criteria are left out when null."""
    from judgevet import Choice, Noul, Score

    of_kind = {Kind.NOUL: Noul, Kind.CHOICE: Choice, Kind.SCORE: Score}
    return of_kind[question.type](instructions=question.instructions, criteria=question.criteria)


def read_answer(question: Question, response: Any) -> dict[str, float]:
    """Label to probability, as returned; confidences and the scalar score are never looked at.

    Raises BadAnswer where no model is named, an answer is missing or too many, of another type,
    over other labels or levels, with another legend, or of something else than numbers.
    """
    from judgevet import ChoiceAnswer, NoulAnswer, ScoreAnswer

    of_kind = {Kind.NOUL: NoulAnswer, Kind.CHOICE: ChoiceAnswer, Kind.SCORE: ScoreAnswer}
    if not isinstance(response.model, str) or not response.model:
        raise BadAnswer("bad_answer_model")
    answers = response.answers
    if not isinstance(answers, Mapping) or set(answers) != {"decision"}:
        raise BadAnswer("bad_answer_id")
    answer = answers["decision"]
    if not isinstance(answer, of_kind[question.type]):
        raise BadAnswer("bad_answer_type")
    if question.type is Kind.NOUL:
        _check_numbers([answer.noul])
        if not 0 <= answer.noul <= 1:
            raise BadAnswer("bad_answer_number")
        return {"no": 1 - answer.noul, "yes": answer.noul}
    probabilities = answer.probabilities
    if question.type is Kind.SCORE:
        levels = question.criteria if isinstance(question.criteria, list) else []
        # A level that is no text may come back as the text that Python makes of it.
        if set(answer.legend) != set(range(len(levels))) or any(
            answer.legend[index]
            not in ((level,) if isinstance(level, str) else (level, str(level)))
            for index, level in enumerate(levels)
        ):
            raise BadAnswer("bad_answer_legend")
        probabilities = {str(level): p for level, p in probabilities.items()}
    if set(probabilities) != set(question.options):
        raise BadAnswer("bad_answer_labels")
    _check_numbers(probabilities.values())
    return {option: probabilities[option] for option in question.options}


def _check_numbers(values: Iterable[Any]) -> None:
    if not all(is_number(value) and math.isfinite(value) for value in values):
        raise BadAnswer("bad_answer_number")


def response_json(response: Any) -> dict[str, Any]:
    """What the provider returned, as evidence, whatever it is made of."""
    names = ("model", "usage", "answers", "receipts")
    fields = {name: _plain(getattr(response, name, None)) for name in names}
    if isinstance(fields["answers"], Mapping):
        fields["answers"] = {name: _plain(part) for name, part in fields["answers"].items()}
    evidence: dict[str, Any] = representable(fields)
    return evidence


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"class": type(value).__name__, **asdict(value)}
    return value
