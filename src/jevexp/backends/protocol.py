"""What every provider offers, what some offer besides, and the one that is configured."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, Self, cast, runtime_checkable

from pydantic import TypeAdapter

from jevexp.backends.rereading import AnswerReader
from jevexp.core.decision import Decision, Request
from jevexp.core.json import dumps
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import AnyBackend, BackendSettings, ModelIdentity, provider_of

_MOST_SHOWN = 3


@runtime_checkable
class Backend(Protocol):
    """A provider of decisions, usable between `open` and `close`.

    `name` goes into the ledger as the adapter. `cost_basis` says what a cost of this provider
    means; None leaves that to the runner.
    """

    @property
    def name(self) -> str:
        """Short name of the provider, such as "llama_cpp"."""

    @property
    def cost_basis(self) -> str | None:
        """What a cost of this provider means, or None."""

    def open(self, log_directory: Path) -> Self:
        """Make ready to answer; a server that is started here logs into `log_directory`.

        Raises InputError where it cannot be reached or started; nothing is left running then.
        """

    def close(self) -> None:
        """Release everything; harmless when called twice or before `open`."""

    def describe(self) -> dict[str, Any]:
        """What the provider says of itself, as JSON; null for what it does not say."""

    def decide(self, request: Request) -> Decision:
        """Ask once: no retries, no fallback. A known failure is a Decision that is not ok.

        Any exception counts as a failed attempt, of which only the class name is kept.
        """


@runtime_checkable
class Estimates(Protocol):
    """A provider that knows more about a request's highest cost than the default reservation."""

    def reserve_estimate(self, request: Request) -> float | None:
        """Highest cost in US dollars, or None where it does not know either."""


@runtime_checkable
class Prepares(Protocol):
    """A provider that has work to do before the clock of a task starts."""

    def prepare(self, request: Request) -> None:
        """Do that work; a failure here is not a failure of the task."""


@runtime_checkable
class Foresees(Protocol):
    """A provider that knows of some questions, before any is sent, that it will not answer."""

    def why_unaskable(self, task: Task) -> str | None:
        """Why a task cannot be put to it, in words; None where nothing speaks against it."""


@runtime_checkable
class Concurrent(Protocol):
    """A provider that several threads may ask at once; others take one request at a time."""

    @property
    def max_concurrency(self) -> int | None:
        """How many requests it takes at once, None for any number; final once it is open."""


@runtime_checkable
class OneAtATime(Protocol):
    """A provider that a setting has take one request at a time, though it could take more."""

    @property
    def one_at_a_time(self) -> str | None:
        """The override that lets it take more, as a person types it; None where none does."""


def foreseen(backend: Backend, tasks: Sequence[Task]) -> str | None:
    """Which of the tasks a provider will not answer, and why, in one line; None for none.

    Raises InputError where it will answer none of them.
    """
    if not isinstance(backend, Foresees):
        return None
    reasons = {task.id: why for task in tasks if (why := backend.why_unaskable(task))}
    if not reasons:
        return None
    shown = [f"{task_id} ({why})" for task_id, why in islice(reasons.items(), _MOST_SHOWN)]
    more = ", …" if len(reasons) > _MOST_SHOWN else ""
    line = f"{len(reasons)} of {len(tasks)} tasks cannot be asked: {', '.join(shown)}{more}"
    if len(reasons) == len(tasks):
        raise InputError(f"dataset: {line}; choose other tasks or another model")
    return line


def check_concurrency(backend: Backend, wanted: int) -> None:
    """Raise InputError where a provider takes fewer requests at once than are wanted."""
    if wanted == 1:
        return
    most = backend.max_concurrency if isinstance(backend, Concurrent) else 1
    if most is not None and most < wanted:
        other = backend.one_at_a_time if isinstance(backend, OneAtATime) else None
        raise InputError(
            f"runner.concurrency: {backend.name} takes {most} request{'s' * (most > 1)} at a time, "
            f"found {wanted}; set runner.concurrency={most}{f', or {other}' if other else ''}"
        )


class ProviderModule(Protocol):
    """What the module of every provider has; `settings` are of the provider's own class."""

    def make(self, settings: Any, model: ModelIdentity, tasks: Iterable[Task]) -> Backend:
        """The provider, not opened yet; `tasks` are those that will be put to it.

        Raises InputError where a file or a package that it needs cannot be used.
        """

    def reader(self, settings: Any, description: Mapping[str, Any]) -> AnswerReader:
        """How the raw answers of a run with these settings are read again.

        `description` is what the provider said of itself when it was open.
        """


def make_backend(settings: BackendSettings, model: ModelIdentity, tasks: Iterable[Task]) -> Backend:
    """The configured provider as its module makes it, which is imported when it is used."""
    return _module(settings).make(settings, model, tasks)


def foreseen_before(
    settings: BackendSettings, model: ModelIdentity, tasks: Sequence[Task]
) -> str | None:
    """As `foreseen`, of a provider that is configured; one that foresees nothing is not made."""
    make = _module(settings).make
    foresees = isinstance(make, type) and issubclass(make, Foresees)
    return foreseen(make(settings, model, tasks), tasks) if foresees else None


def make_reader(fields: Mapping[str, Any], description: Mapping[str, Any]) -> AnswerReader:
    """How the raw answers of a run are read again.

    `fields` are the resolved configuration of its backend, `description` is what the backend said
    of itself. Raises ValueError where this version knows no such backend.
    """
    adapter: TypeAdapter[BackendSettings] = TypeAdapter(AnyBackend)
    settings = adapter.validate_json(dumps(fields), strict=True)
    return _module(settings).reader(settings, description)


def _module(settings: BackendSettings) -> ProviderModule:
    return cast(ProviderModule, importlib.import_module(provider_of(settings).module))
