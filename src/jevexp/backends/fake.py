"""An offline provider whose answers are made up on purpose.

It is no model: with `mode=noise` it is told the right answers when it is made, never in a request,
so that a sweep over `backend.accuracy` shows differences of a known size.
"""

import hashlib
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from jevexp.backends.rereading import AnswerReader, RawAnswer
from jevexp.core.decision import Decision, Request
from jevexp.core.json import dumps, loads
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import FakeBackend, ModelIdentity
from jevexp.untrusted.files import read_document

MODEL_ID = "fake"


def make(settings: FakeBackend, model: ModelIdentity, tasks: Iterable[Task]) -> "Fake":
    """The provider; the only one that is told the answers, since making them up is what it does."""
    del model
    return Fake(settings, answer_key(tasks) if settings.mode == "noise" else {})


def reader(settings: FakeBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads an answer, or a failure, as `Fake` leaves both."""
    del settings, description
    return AnswerReader(_read_again)


def _read_again(_request: Request, raw: RawAnswer) -> Decision:
    if raw.record.ok:
        return made_up(raw.request, raw.response["probabilities"])
    return _failed(raw.request, raw.record.error, raw.record.status_code)


class Fake:
    """Uniform, scripted or noisy answers, the same for the same settings and request.

    `answer_key` is what the function of that name made of the tasks; the noise mode alone uses it.
    Raises InputError where the script cannot be read or is no list of answers.
    """

    cost_basis: str | None = None

    def __init__(self, settings: FakeBackend, answer_key: Mapping[str, str]) -> None:
        self.name = settings.name
        self._settings = settings
        self._answer_key = answer_key
        self._script = _read_script(settings.script) if settings.script else []
        self._asked = 0

    @property
    def max_concurrency(self) -> int | None:
        """Any number; a script's answers are in the order of the questions."""
        return 1 if self._settings.mode == "script" else None

    def open(self, log_directory: Path) -> Self:
        """Start from the script's first answer."""
        del log_directory
        self._asked = 0
        return self

    def close(self) -> None:
        """Nothing is held."""

    def describe(self) -> dict[str, Any]:
        """The parameters; there is nothing else behind the answers."""
        return {"model": MODEL_ID, **self._settings.model_dump(mode="json")}

    def decide(self, request: Request) -> Decision:
        """Answer by the mode; a choice whose question names no options is a failure."""
        if self._settings.latency_s:
            time.sleep(self._settings.latency_s)
        self._asked += 1
        sent, options = request.wire(), request.question.options
        if self._settings.mode == "script":
            if self._asked > len(self._script):
                return _failed(sent, "script_exhausted")
            answer = self._script[self._asked - 1]
            if "probs" in answer:
                return made_up(sent, answer["probs"])
            return _failed(sent, answer["error"], answer.get("status_code"))
        if not options:
            return _failed(sent, "options_unknown")
        if self._settings.mode == "uniform":
            return made_up(sent, dict.fromkeys(options, 1 / len(options)))
        return made_up(sent, self._noisy(request, options))

    def _noisy(self, request: Request, options: Sequence[str]) -> dict[str, float]:
        digest = _digest(request)
        draw = random.Random(f"{self._settings.seed}:{digest}")  # noqa: S311  not for secrets
        gold = self._answer_key.get(digest)
        others = [option for option in options if option != gold]
        right = gold is not None and draw.random() < self._settings.accuracy
        top = gold if right and gold is not None else draw.choice(others or list(options))
        # Above one half, so that the top option stays on top whatever the others get.
        share = 1.0 if len(options) == 1 else draw.uniform(0.55, 0.99)
        weights = {option: draw.expovariate(1) for option in options if option != top}
        total = sum(weights.values())
        rest = {option: (1 - share) * weight / total for option, weight in weights.items()}
        return {option: rest.get(option, share) for option in options}


def answer_key(tasks: Iterable[Task]) -> dict[str, str]:
    """The right label of each task that has one, under the digest of what would be asked."""
    return {
        _digest(Request.of(task, MODEL_ID)): task.gold for task in tasks if task.gold is not None
    }


def _digest(request: Request) -> str:
    content = {"state": request.state, "question": request.question.wire()}
    return hashlib.sha256(dumps(content, sort_keys=True).encode()).hexdigest()


def made_up(sent: Any, probs: Mapping[str, Any]) -> Decision:
    """The answer that a distribution is given as."""
    return Decision(
        ok=True,
        model=MODEL_ID,
        probs=probs,
        usage={"input_tokens": 0, "output_tokens": 0},
        request=sent,
        response={"model": MODEL_ID, "probabilities": dict(probs)},
    )


def _failed(sent: Any, error: str | None, status: int | None = None) -> Decision:
    return Decision(ok=False, model=MODEL_ID, error=error, status_code=status, request=sent)


def _read_script(path: str) -> list[dict[str, Any]]:
    try:
        script = loads(read_document(Path(path)))
    except OSError as error:
        raise InputError(f"backend.script: {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"backend.script: {path}: not JSON: {error}") from error
    if not isinstance(script, list):
        raise InputError(f"backend.script: {path}: expected a list of answers")
    for number, entry in enumerate(script, 1):
        if not _is_answer(entry):
            raise InputError(
                f"backend.script: {path}: answer {number}: expected an object with "
                '"probs": {label: number}, or "error": code and maybe "status_code": number'
            )
    return script


def _is_answer(entry: Any) -> bool:
    match entry:
        case {"probs": probs}:
            return isinstance(probs, dict)
        case {"error": str()}:
            # A bool is an int, and no status.
            return type(entry.get("status_code")) in (int, type(None))
    return False
