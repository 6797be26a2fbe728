"""The judgevet provider: which of its providers is asked, from `open` to `close`."""

from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Self

from jevexp.backends.judgevet.decide import Decider
from jevexp.backends.judgevet.environment import environment
from jevexp.backends.judgevet.packages import require_packages, versions
from jevexp.backends.judgevet.providers import (
    Provider,
    factory_provider,
    http_provider,
    typevet_provider,
)
from jevexp.core.decision import Decision, Request
from jevexp.settings import JudgevetBackend, ModelIdentity
from jevexp.settings.secrets import read_secret


class Judgevet:
    """Any judgevet provider; see docs/reference/judgevet.md.

    Raises:
        InputError: this Python is too old, or the bridge's packages are not installed.
    """

    cost_basis: str | None = None

    def __init__(self, settings: JudgevetBackend, model: ModelIdentity) -> None:
        require_packages()
        self._settings = settings
        self._model = model
        self._open = ExitStack()
        self._decider: Decider | None = None
        self._facts: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The configured name."""
        return self._settings.name

    def open(self, log_directory: Path) -> Self:
        """Make the provider; a typevet session asks its server about the model.

        Raises:
            InputError: the key is not set, the session cannot be opened, or the factory fails.
                Nothing is left open.
        """
        del log_directory
        settings = self._settings
        key = read_secret(settings.key_env, "backend.key_env") if settings.has_address else None
        provider = self._open.enter_context(self._provider(key))
        self._decider = Decider(provider, key)
        self._facts = {
            "kind": settings.kind,
            "provider": settings.provider,
            "model": provider.model,
            "base_url": settings.base_url if settings.has_address else None,
            "packages": versions(),
            "environment": (
                environment(settings, self._model.alias) if settings.provider == "typevet" else None
            ),
            "readout": self._readout(),
        }
        return self

    def _readout(self) -> dict[str, Any]:
        """What decides how an answer is read: typevet composes the prompts itself."""
        settings = self._settings
        readout: dict[str, Any] = {"provider": settings.provider}
        if settings.provider == "factory":
            readout["factory"] = settings.factory
        if settings.provider == "typevet":
            session = settings.typevet
            readout |= {"session": session.backend, "framing": session.framing}
            readout["version"] = versions()["typevet"]
        return readout

    def _provider(self, key: str | None) -> AbstractContextManager[Provider]:
        settings = self._settings
        if settings.factory is not None:
            return factory_provider(settings.factory)
        make = http_provider if settings.provider == "http" else typevet_provider
        return make(settings, self._model.alias, key)

    def close(self) -> None:
        """Close the provider."""
        self._decider = None
        self._open.close()

    def describe(self) -> dict[str, Any]:
        """What is asked and with which packages; `environment` is the session's, without key."""
        return dict(self._facts)

    def decide(self, request: Request) -> Decision:
        """Ask once and check the answer."""
        if self._decider is None:
            raise RuntimeError("the backend is not open")
        return self._decider.decide(request)
