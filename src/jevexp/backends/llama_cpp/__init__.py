"""Any GGUF model on any llama.cpp server: one next-token distribution a decision."""

from collections.abc import Iterable, Mapping
from typing import Any

from jevexp.backends.llama_cpp.backend import LlamaCpp
from jevexp.backends.llama_cpp.client import read_again
from jevexp.backends.rereading import AnswerReader, RequestForm
from jevexp.core.task import Task
from jevexp.settings import LlamaCppBackend, ModelIdentity

__all__ = ["LlamaCpp", "make", "reader"]


def make(settings: LlamaCppBackend, model: ModelIdentity, tasks: Iterable[Task]) -> LlamaCpp:
    """The provider, not opened yet."""
    del tasks
    return LlamaCpp(settings, model)


def reader(settings: LlamaCppBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads completions again, by the code that read them first."""
    return AnswerReader(
        lambda request, raw: read_again(settings, description, request, raw),
        request_form=RequestForm.COMPUTED,
    )
