"""Any GGUF model on any llama.cpp server: a decision model's own answer, else a readout."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from jevexp.backends.connection import Connected
from jevexp.backends.llama_cpp import native
from jevexp.backends.llama_cpp.client import LlamaCompletions, read_again
from jevexp.backends.llama_cpp.server import connect, inspect
from jevexp.backends.llama_cpp.slots import Slots
from jevexp.backends.llama_cpp.weights import decision_type_of, weights_to_serve
from jevexp.backends.next_token import Decider
from jevexp.backends.prompt import PROMPT_VERSION
from jevexp.backends.protocol import foreseen
from jevexp.backends.readout import READOUT_VERSION
from jevexp.backends.rereading import AnswerReader, RequestForm
from jevexp.backends.transport import Transport
from jevexp.core.decision import Request
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import LlamaCppBackend
from jevexp.untrusted.addresses import is_loopback


def reader(settings: LlamaCppBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the answers of the run's route again, by the code that read them first."""
    if native.is_native(description):
        return AnswerReader(lambda request, raw: native.read_again(description, request, raw))
    return AnswerReader(
        lambda request, raw: read_again(settings, description, request, raw),
        request_form=RequestForm.COMPUTED,
    )


class LlamaCpp(Connected[LlamaCppBackend]):
    """A llama.cpp server as a provider; see docs/reference/llama-cpp.md."""

    # Set on the native route, whose server has to forget before each task.
    prepare: Callable[[Request], None]

    @cached_property
    def _type_to_serve(self) -> str | None:
        """The decision type of the file that will be served here; None where it has none."""
        try:
            gguf = weights_to_serve(self._settings.server, self._model, assemble=False)
        except InputError:
            # Said when it is opened.
            return None
        return decision_type_of(gguf) if gguf else None

    @property
    def _is_native(self) -> bool:
        """Whether the native route is taken, as far as can be told before it is open."""
        if self._facts:
            return native.is_native(self._facts)
        route = self._settings.readout.route
        return route == "native" or (route == "auto" and self._type_to_serve is not None)

    @property
    def one_at_a_time(self) -> str | None:
        """The override without which a decision model is asked one question at a time."""
        isolated = self._is_native and self._settings.isolation == "each"
        return "backend.isolation=none" if isolated else None

    def why_unaskable(self, task: Task) -> str | None:
        """Why a decision model of the served type would refuse a task, without asking it."""
        if not self._is_native:
            return None
        decision_type = self._facts["decision_type"] if self._facts else self._type_to_serve
        try:
            native.check_askable(task.state, task.question, decision_type)
        except native.Unaskable as refusal:
            return str(refusal)
        return None

    @property
    def max_concurrency(self) -> int | None:
        """The server's slots; before it is open, those that it will be started with.

        One where slots are emptied before each task: a native request cannot choose its slot.
        """
        if self.one_at_a_time:
            return 1
        if self._facts:
            slots: int | None = self._facts["total_slots"]
            return slots
        server = self._settings.server
        return server.slots if weights_to_serve(server, self._model) else None

    def _open(self, log_directory: Path) -> None:
        settings = self._settings
        connection = self._hold(connect(settings, self._model, log_directory))
        route, facts = inspect(connection, settings.server, self._model.alias)
        gguf = facts["gguf"]
        # Of a server on this machine the file can be read too, unless its path begins elsewhere.
        if (
            gguf is None
            and is_loopback(connection.url)
            and Path(facts["model_path"] or "").is_absolute()
        ):
            gguf = facts["model_path"]
        self._facts |= facts | {"decision_type": decision_type_of(Path(gguf)) if gguf else None}
        decides = "decisions" in (facts["output_modalities"] or ())
        if settings.readout.route == "native" and not decides:
            raise InputError(
                f"backend.readout.route: {connection.url} serves no decision model, found "
                f"{facts['model']!r}; set backend.readout.route=auto"
            )
        if decides and settings.readout.route != "tokens":
            self._open_native(connection.transport, route)
            return
        if decides:
            self._facts["warnings"] = [
                "a decision model, asked by route=tokens: another prompt than its own, and no "
                "temperatures"
            ]
        self._facts |= {
            "prompt_version": PROMPT_VERSION,
            "template_kwargs": dict(settings.template.kwargs),
            "readout": {
                "version": READOUT_VERSION,
                **settings.readout.model_dump(include={"bias", "extra_probs"}),
            },
        }
        client = LlamaCompletions(connection.transport, settings, route)
        self._ask = Decider(client, facts["model"]).decide

    def _open_native(self, transport: Transport, route: Mapping[str, str]) -> None:
        facts, slots = self._facts, None
        if self._settings.isolation == "each":
            slots = Slots(transport, route, facts["total_slots"], facts["n_vocab"])
            facts["emptied_by"] = slots.way
        isolated = slots is not None and slots.way is not None
        facts["readout"] = {
            "version": native.NATIVE_VERSION,
            "route": "native",
            "isolation": "each" if isolated else "none",
        }
        warnings = [
            foreseen(self, self._tasks),
            native.too_long(transport, route, self._tasks, facts["n_ctx"]),
        ]
        if slots is None:
            warnings.append("isolation=none: an answer may depend on the tasks before it")
        elif isolated:
            self.prepare = slots.prepare
        else:
            warnings.append(
                "this server cannot be made to forget a task: an answer may depend on those "
                "before it; start it with --slot-save-path DIR"
            )
        facts["warnings"] = [warning for warning in warnings if warning]
        self._ask = native.NativeRoute(
            transport, facts["model"], facts["decision_type"], slots if isolated else None
        ).decide


make = LlamaCpp
