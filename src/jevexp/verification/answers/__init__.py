"""Reads a run's raw answers again, as far as each provider's raw answers determine its records."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from jevexp.backends.replay.run import decision_of
from jevexp.core.decision import Decision, Request
from jevexp.core.json import dumps
from jevexp.settings import (
    AnyBackend,
    FakeBackend,
    JudgevetBackend,
    LlamaCppBackend,
    OpenAIChatBackend,
    OpenAILogprobsBackend,
    PythonBackend,
    ReplayBackend,
    SystemOneBackend,
)
from jevexp.settings.settings import Backend
from jevexp.verification.answers.tape import OneReply, Raw

__all__ = ["Raw", "Reader"]


class Reader:
    """Reads the answers of one run; no provider is asked, and no code of a person's is imported.

    Args:
        fields: the resolved configuration of the backend.
        description: what the backend said of itself.

    Raises:
        ValueError: this version knows no such backend.
    """

    def __init__(self, fields: Mapping[str, Any], description: Mapping[str, Any]) -> None:
        self.settings: AnyBackend = TypeAdapter(Backend).validate_json(dumps(fields), strict=True)
        self._description = description

    def read(self, request: Request, raw: Raw) -> Decision | None:
        """The decision that the raw answer comes to; None where it does not determine one."""
        if raw.request is None and raw.response is None and raw.record.probs_source == "unknown":
            # The provider raised something; nothing but its class is kept.
            return None
        settings, description = self.settings, self._description
        match settings:
            case LlamaCppBackend():
                from jevexp.verification.answers.llama_cpp import read_llama_cpp

                return read_llama_cpp(settings, description, request, raw)
            case SystemOneBackend():
                from jevexp.backends.connection import http_error
                from jevexp.backends.systemone import backend

                return backend.ask(OneReply(raw, http_error), request, description["model"])
            case OpenAIChatBackend():
                from jevexp.backends.openai import chat
                from jevexp.backends.openai.connection import code_of

                tape = OneReply(raw, code_of)
                return chat.ask(tape, request, settings, description["model"])
            case OpenAILogprobsBackend():
                from jevexp.verification.answers.openai_logprobs import read_openai_logprobs

                return read_openai_logprobs(settings, description, request, raw)
        return self._plain(request, raw)

    def _plain(self, request: Request, raw: Raw) -> Decision | None:
        from jevexp.verification.answers.plain import (
            read_judgevet,
            read_made_up,
            read_probabilities,
        )

        recorded = replace(decision_of(raw.record, raw.response), request=raw.request)
        match self.settings:
            case ReplayBackend(answers=str()):
                return read_probabilities(recorded, raw, "probs")
            case FakeBackend():
                return read_made_up(raw)
            case PythonBackend() | ReplayBackend():
                return read_probabilities(recorded, raw, "probabilities")
            case JudgevetBackend():
                return read_judgevet(recorded, request, raw)
        return None
