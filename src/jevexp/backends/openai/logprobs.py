"""Next-token probabilities, on any OpenAI-compatible server that lists them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from jevexp.backends.connection import Connected
from jevexp.backends.next_token import Decider
from jevexp.backends.openai.client import OpenAICompletions, read_again
from jevexp.backends.openai.connection import OpenAIConnection
from jevexp.backends.openai.probe import find_features
from jevexp.backends.prompt import PROMPT_VERSION
from jevexp.backends.readout import READOUT_VERSION
from jevexp.backends.rereading import AnswerReader, RequestForm
from jevexp.backends.transport import Failure
from jevexp.core.decision import Decision, Request
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import ModelIdentity, OpenAILogprobsBackend


def make(
    settings: OpenAILogprobsBackend, model: ModelIdentity, tasks: Iterable[Task]
) -> "OpenAILogprobs":
    """The provider, not opened yet."""
    del tasks
    return OpenAILogprobs(settings, model)


def reader(settings: OpenAILogprobsBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads listed log-probabilities again, by the code that read them first."""
    return AnswerReader(
        lambda request, raw: read_again(settings, description, request, raw),
        request_form=RequestForm.COMPUTED,
    )


class OpenAILogprobs(Connected[OpenAILogprobsBackend, OpenAIConnection]):
    """A model's own distribution, as far as the server shows it; see docs/reference/openai.md."""

    def __init__(self, settings: OpenAILogprobsBackend, model: ModelIdentity) -> None:
        super().__init__(settings)
        self._alias = model.alias
        self._decider: Decider | None = None

    def open(self, log_directory: Path) -> Self:
        """Connect to the server, or start it, and find out with a harmless question what it can.

        Raises:
            InputError: the server cannot be reached, started or read. Nothing is left running.
        """
        try:
            self._open(log_directory)
        except BaseException:
            self.close()
            raise
        return self

    def _open(self, log_directory: Path) -> None:
        settings = self._settings
        self._connection = connection = OpenAIConnection(settings, self._alias, log_directory)
        try:
            features = find_features(connection.transport, settings, self._alias)
        except Failure as failure:
            raise self._unreadable(connection, failure) from failure
        client = OpenAICompletions(connection.transport, settings, features)
        self._decider = Decider(client, connection.model)
        self._facts = {
            "kind": settings.kind,
            "managed": connection.managed,
            "base_url": connection.base_url,
            "model": connection.model,
            "prompt_version": PROMPT_VERSION,
            "template_kwargs": dict(settings.template.kwargs),
            "readout": {
                "version": READOUT_VERSION,
                "route": features.route,
                **settings.readout.model_dump(),
                "options": dict(settings.options),
                "remove": list(settings.remove),
            },
            "features": features.described(),
        }

    def _unreadable(self, connection: OpenAIConnection, failure: Failure) -> InputError:
        if failure.code in ("no_logprobs", "bad_response"):
            return InputError(
                f"backend.kind: {connection.base_url} answers without log-probabilities; use "
                "backend=openai_chat, or another server"
            )
        if failure.status in (400, 404, 422):
            return InputError(
                f"backend.route: {connection.base_url} refuses a short question for one token with "
                f"logprobs (HTTP {failure.status}); check model.alias={self._alias}, try the other "
                "route, or name fields that it does not know in backend.remove, such as "
                "[chat_template_kwargs]"
            )
        return connection.unusable(failure)

    def close(self) -> None:
        """Close the connection and end a server that was started here."""
        self._decider = None
        super().close()

    def decide(self, request: Request) -> Decision:
        """Read the distribution over the options."""
        if self._decider is None:
            raise RuntimeError("the backend is not open")
        return self._decider.decide(request)
