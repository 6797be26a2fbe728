"""Any judgevet provider: its own HTTP adapter, a typevet session, or one from a factory."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from jevexp.backends.judgevet.backend import Judgevet
from jevexp.backends.rereading import AnswerReader, RawAnswer, RequestForm
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Kind, Task
from jevexp.settings import JudgevetBackend, ModelIdentity

__all__ = ["Judgevet", "make", "reader"]


def make(settings: JudgevetBackend, model: ModelIdentity, tasks: Iterable[Task]) -> Judgevet:
    """The provider, not opened yet.

    Raises:
        InputError: this Python is too old, or the bridge's packages are not installed.
    """
    del tasks
    return Judgevet(settings, model)


def reader(settings: JudgevetBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the distribution in the answer that judgevet returned; needs none of its packages."""
    del settings, description
    return AnswerReader(_read_again, request_form=RequestForm.EXTENDED)


def _read_again(request: Request, raw: RawAnswer) -> Decision | None:
    answers = raw.response.get("answers") if isinstance(raw.response, Mapping) else None
    answer = answers.get("decision") if isinstance(answers, Mapping) else None
    if not raw.record.ok or not isinstance(answer, Mapping):
        return None
    probs: dict[str, Any]
    if request.question.type is Kind.NOUL:
        probs = {"no": 1 - answer["noul"], "yes": answer["noul"]}
    else:
        probs = {option: answer["probabilities"][option] for option in request.question.options}
    return replace(raw.recorded, probs=probs)
