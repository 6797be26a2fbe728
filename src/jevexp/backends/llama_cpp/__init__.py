"""Any GGUF model on any llama.cpp server: one next-token distribution a decision."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jevexp.backends.connection import Connected
from jevexp.backends.llama_cpp.client import LlamaCompletions, read_again
from jevexp.backends.llama_cpp.server import connect, inspect
from jevexp.backends.llama_cpp.weights import weights_to_serve
from jevexp.backends.next_token import Decider
from jevexp.backends.prompt import PROMPT_VERSION
from jevexp.backends.readout import READOUT_VERSION
from jevexp.backends.rereading import AnswerReader, RequestForm
from jevexp.settings import LlamaCppBackend


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
        connection = self._hold(connect(settings, self._model, log_directory))
        route, facts = inspect(connection, settings.server, self._model.alias)
        self._facts |= {
            **facts,
            "prompt_version": PROMPT_VERSION,
            "template_kwargs": dict(settings.template.kwargs),
            "readout": {"version": READOUT_VERSION, **settings.readout.model_dump()},
        }
        client = LlamaCompletions(connection.transport, settings, route)
        self._ask = Decider(client, facts["model"]).decide


make = LlamaCpp
