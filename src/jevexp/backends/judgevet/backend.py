"""The judgevet provider: which of its providers is asked, from `open` to `close`."""

import sys
from contextlib import AbstractContextManager, ExitStack
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from jevexp.backends.judgevet.decide import Decider
from jevexp.backends.judgevet.providers import (
    Provider,
    environment,
    factory_provider,
    http_provider,
    typevet_provider,
)
from jevexp.core.decision import Decision, Request
from jevexp.errors import InputError
from jevexp.settings import JudgevetBackend, ModelIdentity
from jevexp.settings.base import read_secret

PACKAGES = ("judgevet", "typevet")
_OLDEST_PYTHON = (3, 12)


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


def require_packages() -> None:
    """Check Python's version and that the bridge is installed.

    Raises:
        InputError: one of them is missing; says which.
    """
    here = tuple(sys.version_info[:3])
    if here < _OLDEST_PYTHON:
        raise InputError(
            "backend.kind: judgevet needs Python 3.12 or newer, this is "
            f"{'.'.join(map(str, here))}; install jevexp[bridge] there, or choose another backend"
        )
    for package in PACKAGES:
        if find_spec(package) is None:
            raise InputError(
                f"backend.kind: the package {package} is not installed; "
                "pip install 'jevexp[bridge]'"
            )


def versions() -> dict[str, str]:
    """The installed version of each of the bridge's packages."""
    return {package: version(package) for package in PACKAGES}
