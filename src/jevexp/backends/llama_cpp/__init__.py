"""Any GGUF model on any llama.cpp server: one next-token distribution a decision."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jevexp.backends.connection import Connected
from jevexp.backends.llama_cpp.client import LlamaCompletions, read_again
from jevexp.backends.llama_cpp.server import LlamaConnection
from jevexp.backends.llama_cpp.weights import weights_to_serve
from jevexp.backends.next_token import Decider
from jevexp.backends.prompt import PROMPT_VERSION
from jevexp.backends.readout import READOUT_VERSION
from jevexp.backends.rereading import AnswerReader, RequestForm
from jevexp.core.task import Task
from jevexp.settings import LlamaCppBackend, ModelIdentity


def make(settings: LlamaCppBackend, model: ModelIdentity, tasks: Iterable[Task]) -> "LlamaCpp":
    """The provider, not opened yet."""
    del tasks
    return LlamaCpp(settings, model)


def reader(settings: LlamaCppBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads completions again, by the code that read them first."""
    return AnswerReader(
        lambda request, raw: read_again(settings, description, request, raw),
        request_form=RequestForm.COMPUTED,
    )


class LlamaCpp(Connected[LlamaCppBackend]):
    """A llama.cpp server as a provider; see docs/reference/llama-cpp.md."""

    @property
    def max_concurrency(self) -> int | None:
        """The server's slots; before it is open, those that it will be started with."""
        if self._facts:
            slots: int | None = self._facts["total_slots"]
            return slots
        server = self._settings.server
        return server.slots if weights_to_serve(server, self._model) else None

    def _open(self, log_directory: Path) -> None:
        settings = self._settings
        connection = self._hold(LlamaConnection(settings, self._model, log_directory))
        self._facts |= {
            **connection.facts,
            "prompt_version": PROMPT_VERSION,
            "template_kwargs": dict(settings.template.kwargs),
            "readout": {"version": READOUT_VERSION, **settings.readout.model_dump()},
        }
        client = LlamaCompletions(connection.transport, settings, connection.route)
        self._ask = Decider(client, self._facts["model"]).decide
