"""The one way from a name in the configuration to code: `backend.factory`, and only that field."""

import importlib
import os
import sys
from collections.abc import Callable
from functools import reduce
from types import ModuleType
from typing import Any

from jevexp.errors import InputError


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
