"""Finds the callable that `backend.factory` names, calls it, and checks what it made."""

import copy
import importlib
import inspect
import os
import sys
from collections.abc import Callable
from functools import reduce
from types import ModuleType
from typing import Any

from jevexp.backends.protocol import Backend, Prepares
from jevexp.backends.python_factory.function import Function
from jevexp.backends.python_factory.guarded import Guarded, GuardedPreparing
from jevexp.errors import InputError
from jevexp.settings import PythonBackend

MEMBERS = ("name", "cost_basis", "open", "close", "describe", "decide")


def make_python(settings: PythonBackend) -> Backend:
    """The person's own model, not opened yet; this imports its module and calls its factory.

    Raises:
        InputError: there is no such factory, it raised, or what it made is no backend.
    """
    made = _make(settings, _factory(settings.factory))
    if callable(made) and not hasattr(made, "decide"):
        return Guarded(Function(made, settings), settings)
    if missing := [member for member in MEMBERS if not hasattr(made, member)]:
        raise InputError(
            f"backend.factory: {settings.factory} made a {type(made).__name__} without "
            f"{', '.join(missing)}; a backend has {', '.join(MEMBERS)}"
        )
    return (GuardedPreparing if isinstance(made, Prepares) else Guarded)(made, settings)


def _factory(path: str) -> Callable[..., Any]:
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
