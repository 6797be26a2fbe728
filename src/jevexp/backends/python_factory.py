"""A person's own model in this process, made by the callable that the configuration names.

>>> # my_model.py, in the current directory; backend=python backend.factory=my_model:make
>>> def make(top=0.9):
...     def decide(request):
...         first, *others = request.question.options
...         return {first: top} | {label: (1 - top) / len(others) for label in others}
...     return decide
"""

import copy
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from jevexp.backends.protocol import Backend, Concurrent, Estimates, Prepares
from jevexp.backends.rereading import AnswerReader, RequestForm, read_probabilities
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import representable
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.settings import ModelIdentity, PythonBackend

MEMBERS = ("name", "cost_basis", "open", "close", "describe", "decide")


# The types that a decision's fields must have.
_FIELDS: dict[str, Any] = {
    "ok": bool,
    "model": str,
    "probs": Mapping | None,
    "label": str | None,
    "probs_source": ProbsSource,
    "error": str | None,
    "status_code": int | None,
    "usage": Mapping,
    "runtime": Mapping | None,
}


def make(settings: PythonBackend, model: ModelIdentity, tasks: Iterable[Task]) -> Backend:
    """The person's own model, not opened yet; this imports its module and calls its factory.

    Raises:
        InputError: there is no such factory, it raised, or what it made is no backend.
    """
    del model, tasks
    return make_python(settings)


def reader(settings: PythonBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the distributions of functions, whose responses are made here; imports no code."""
    del settings, description
    return AnswerReader(
        lambda _request, raw: read_probabilities(raw, "probabilities"),
        request_form=RequestForm.FOREIGN,
        foreign_amounts=True,
    )


def make_python(settings: PythonBackend) -> Backend:
    """The person's own model, not opened yet; this imports its module and calls its factory.

    Raises:
        InputError: there is no such factory, it raised, or what it made is no backend.
    """
    made = _make(settings, find_callable(settings.factory))
    if callable(made) and not hasattr(made, "decide"):
        return Guarded(Function(made, settings), settings)
    if missing := [member for member in MEMBERS if not hasattr(made, member)]:
        raise InputError(
            f"backend.factory: {settings.factory} made a {type(made).__name__} without "
            f"{', '.join(missing)}; a backend has {', '.join(MEMBERS)}"
        )
    return (GuardedPreparing if isinstance(made, Prepares) else Guarded)(made, settings)


def _make(settings: PythonBackend, factory: Callable[..., Any]) -> Any:
    options = copy.deepcopy(settings.options)
    _check_options(factory, options)
    try:
        return factory(**options)
    except (Exception, SystemExit) as error:
        # The class name only, since what a person's code says may hold a secret.
        raise InputError(
            f"backend.factory: {settings.factory} raised {type(error).__name__} while being made"
        ) from error


def _check_options(factory: Callable[..., Any], options: dict[str, Any]) -> None:
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):
        # Written in C, without a signature: the call will tell.
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        raise InputError(f"backend.options: {error}") from error


class Function:
    """Answers with what a function returns: label to probability, or a whole Decision.

    The factory's path stands for the model, since a function has no other name.
    """

    cost_basis: str | None = None

    def __init__(self, decide: Callable[[Request], Any], settings: PythonBackend) -> None:
        self.name = settings.name
        self._decide = decide
        self._model = settings.factory

    def open(self, log_directory: Path) -> Self:
        """Nothing to open."""
        del log_directory
        return self

    def close(self) -> None:
        """Nothing is held."""

    def describe(self) -> dict[str, Any]:
        """Its name."""
        return {"model": self._model}

    def decide(self, request: Request) -> Decision:
        """Call the function; a choice whose question names no options is a failure.

        Raises:
            TypeError: it returned neither a mapping nor a Decision.
        """
        sent = request.wire()
        if not request.question.options:
            return Decision(ok=False, model=self._model, error="options_unknown", request=sent)
        answer = self._decide(request)
        if isinstance(answer, Decision):
            return answer
        if not isinstance(answer, Mapping):
            raise TypeError(f"expected label to probability, found a {type(answer).__name__}")
        probs = dict(answer)
        return Decision(
            ok=True,
            model=self._model,
            probs=probs,
            request=sent,
            response={"probabilities": probs},
        )


class Guarded:
    """Passes everything on; an answer that is no Decision becomes a failed attempt.

    Args:
        made: what the factory made.
        settings: for the name, and for the description.
    """

    def __init__(self, made: Backend, settings: PythonBackend) -> None:
        self.name = settings.name
        self.cost_basis = made.cost_basis
        self._made = made
        self._settings = settings

    @property
    def max_concurrency(self) -> int | None:
        """What it says itself; one at a time where it says nothing."""
        return self._made.max_concurrency if isinstance(self._made, Concurrent) else 1

    def open(self, log_directory: Path) -> Self:
        """Open the person's backend."""
        self._made.open(log_directory)
        return self

    def close(self) -> None:
        """Close it."""
        self._made.close()

    def describe(self) -> dict[str, Any]:
        """What it says of itself, and how it was made.

        Raises:
            InputError: it says nothing that could be written down.
        """
        said = self._made.describe()
        if not isinstance(said, Mapping):
            raise InputError(
                f"backend.factory: {self._settings.factory}: describe returned a "
                f"{type(said).__name__}; expected a dict"
            )
        own = {"kind": self._settings.kind, "factory": self._settings.factory}
        return {"model": None, **representable(said), **own}

    def decide(self, request: Request) -> Decision:
        """Ask it once.

        Raises:
            TypeError: it answered with something else than a well-formed Decision.
        """
        decision = self._made.decide(request)
        if not isinstance(decision, Decision):
            raise TypeError(f"decide returned a {type(decision).__name__}; expected a Decision")
        for field, expected in _FIELDS.items():
            value = getattr(decision, field)
            is_number = field == "status_code" and isinstance(value, bool)
            if is_number or not isinstance(value, expected):
                raise TypeError(f"Decision.{field} is a {type(value).__name__}")
        return decision

    def reserve_estimate(self, request: Request) -> float | None:
        """Its own estimate, where it has one."""
        return self._made.reserve_estimate(request) if isinstance(self._made, Estimates) else None


class GuardedPreparing(Guarded):
    """One that has work to do before the clock starts."""

    def prepare(self, request: Request) -> None:
        """Do that work."""
        if isinstance(self._made, Prepares):
            self._made.prepare(request)


def find_callable(path: str) -> Callable[..., Any]:
    """Import the module of `package.module:callable` and look the callable up.

    Raises:
        InputError: there is no such module or callable, or importing it failed.
    """
    module, _, attribute = path.partition(":")
    try:
        found = reduce(getattr, attribute.split("."), _import(module))
    except AttributeError as error:
        raise InputError(f"backend.factory: {module} has no {attribute}") from error
    if not callable(found):
        raise InputError(
            f"backend.factory: {path} is a {type(found).__name__}; name what can be called"
        )
    made: Callable[..., Any] = found
    return made


def _import(name: str) -> ModuleType:
    # Last, so that a file of the person's never hides a library's module.
    if not {"", os.getcwd()} & set(sys.path):  # noqa: PTH109  as sys.path spells it
        sys.path.append(os.getcwd())  # noqa: PTH109
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise InputError(
                f"backend.factory: no module {error.name}; install it, or start jevexp in the "
                "folder that holds it"
            ) from error
        raise InputError(f"backend.factory: {name} needs the module {error.name}") from error
    except (Exception, SystemExit) as error:
        raise InputError(
            f"backend.factory: {name} raised {type(error).__name__} while being imported"
        ) from error
