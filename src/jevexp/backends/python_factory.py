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
from contextlib import suppress
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any, Self, cast

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

    Raises InputError: there is no such factory, it raised, or what it made is no backend.
    """
    del model, tasks
    factory = find_callable(settings.factory)
    options = copy.deepcopy(settings.options)
    # A callable written in C has no signature: the call will tell.
    with suppress(TypeError, ValueError):
        signature = inspect.signature(factory)
        try:
            signature.bind(**options)
        except TypeError as error:
            raise InputError(f"backend.options: {error}") from error
    product = call_safely(settings.factory, lambda: factory(**options), " while being made")
    if callable(product) and not hasattr(product, "decide"):
        product = Function(product, settings)
    if missing := [member for member in MEMBERS if not hasattr(product, member)]:
        raise InputError(
            f"backend.factory: {settings.factory} made a {type(product).__name__} without "
            f"{', '.join(missing)}; a backend has {', '.join(MEMBERS)}"
        )
    return Guarded(product, settings)


def reader(settings: PythonBackend, description: Mapping[str, Any]) -> AnswerReader:
    """Reads the distributions of functions, whose responses are made here; imports no code."""
    del settings, description
    return AnswerReader(
        lambda _request, raw: read_probabilities(raw, "probabilities"),
        request_form=RequestForm.FOREIGN,
    )


def call_safely(name: str, step: Callable[[], Any], advice: str) -> Any:
    """Call a person's own code.

    Raises InputError with the class of what it raised only: what it says may hold a secret.
    """
    try:
        return step()
    except (Exception, SystemExit) as error:
        raise InputError(
            f"backend.factory: {name} raised {type(error).__name__}{advice}"
        ) from error


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

        Raises TypeError where it returned neither a mapping nor a Decision.
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
        response = {"probabilities": probs}
        return Decision(ok=True, model=self._model, probs=probs, request=sent, response=response)


class Guarded:
    """Passes everything on; an answer that is no Decision becomes a failed attempt."""

    def __init__(self, product: Backend, settings: PythonBackend) -> None:
        self.name = settings.name
        self.cost_basis = product.cost_basis
        self._product = product
        self._settings = settings
        if isinstance(product, Prepares):
            self.prepare = product.prepare

    @property
    def max_concurrency(self) -> int | None:
        """What it says itself; one at a time where it says nothing."""
        return self._product.max_concurrency if isinstance(self._product, Concurrent) else 1

    def open(self, log_directory: Path) -> Self:
        """Open the person's backend."""
        self._product.open(log_directory)
        return self

    def close(self) -> None:
        """Close it."""
        self._product.close()

    def describe(self) -> dict[str, Any]:
        """What it says of itself, and how it was made; raises InputError where it is no mapping."""
        kind, factory = self._settings.kind, self._settings.factory
        description = self._product.describe()
        if not isinstance(description, Mapping):
            raise InputError(
                f"backend.factory: {factory}: describe returned a {type(description).__name__}; "
                "expected a dict"
            )
        return {"model": None, **representable(description), "kind": kind, "factory": factory}

    def decide(self, request: Request) -> Decision:
        """Ask it once; raises TypeError where it answers with no well-formed Decision."""
        decision = self._product.decide(request)
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
        product = self._product
        return product.reserve_estimate(request) if isinstance(product, Estimates) else None


def find_callable(path: str) -> Callable[..., Any]:
    """Import the module of `package.module:callable` and look the callable up.

    Raises InputError where there is no such module or callable, or importing it failed.
    """
    module, _, attribute = path.partition(":")
    try:
        target: Any = reduce(getattr, attribute.split("."), _import(module))
    except AttributeError as error:
        raise InputError(f"backend.factory: {module} has no {attribute}") from error
    if not callable(target):
        raise InputError(
            f"backend.factory: {path} is a {type(target).__name__}; name what can be called"
        )
    return cast(Callable[..., Any], target)


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
