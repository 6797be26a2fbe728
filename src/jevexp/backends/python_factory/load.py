"""Calls what `backend.factory` names, and checks what it made."""

import copy
import inspect
from collections.abc import Callable
from typing import Any

from jevexp.backends.named_code import find_callable
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
