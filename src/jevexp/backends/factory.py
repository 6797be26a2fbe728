"""The configured provider: its module is found in the list of providers and imported when used."""

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

from pydantic import TypeAdapter

from jevexp.backends.protocol import Backend
from jevexp.backends.rereading import AnswerReader
from jevexp.core.json import dumps
from jevexp.core.task import Task
from jevexp.settings import AnyBackend, BackendSettings, ModelIdentity, provider_of


class ProviderModule(Protocol):
    """What the module of every provider has; `settings` are of the provider's own class."""

    def make(self, settings: Any, model: ModelIdentity, tasks: Iterable[Task]) -> Backend:
        """The provider, not opened yet; `tasks` are those that will be put to it.

        Raises:
            InputError: a file or a package that the provider needs cannot be used.
        """

    def reader(self, settings: Any, description: Mapping[str, Any]) -> AnswerReader:
        """How the provider's raw answers are read again.

        Args:
            settings: those of the run.
            description: what the provider said of itself when it was open.
        """


def make_backend(settings: BackendSettings, model: ModelIdentity, tasks: Iterable[Task]) -> Backend:
    """The configured provider, not opened yet.

    Raises:
        InputError: a file or a package that the provider needs cannot be used.
    """
    return _module(settings).make(settings, model, tasks)


def make_reader(fields: Mapping[str, Any], description: Mapping[str, Any]) -> AnswerReader:
    """How the raw answers of a run are read again.

    Args:
        fields: the resolved configuration of the run's backend.
        description: what the backend said of itself.

    Raises:
        ValueError: this version knows no such backend.
    """
    adapter: TypeAdapter[BackendSettings] = TypeAdapter(AnyBackend)
    settings = adapter.validate_json(dumps(fields), strict=True)
    return _module(settings).reader(settings, description)


def _module(settings: BackendSettings) -> ProviderModule:
    return cast(ProviderModule, importlib.import_module(provider_of(settings).module))
