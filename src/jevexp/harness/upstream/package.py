"""The pinned harness's classes, imported from where it was found."""

import importlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jevexp.errors import InputError
from jevexp.harness.upstream.find import NAME, Location

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Package:
    """What we use of it, under its own names: two packages' types never meet, so all are Any."""

    location: Location
    Runner: Any
    Ledger: Any
    Task: Any
    DecisionResult: Any
    summarize: Any


def load(location: Location) -> Package:
    """Import the package from its location.

    Raises:
        InputError: another one is imported already, or it cannot be imported.
    """
    with _importable(location):
        try:
            runner = importlib.import_module(f"{NAME}.runner")
            package = Package(
                location=location,
                Runner=runner.Runner,
                Ledger=importlib.import_module(f"{NAME}.budget").Ledger,
                Task=importlib.import_module(f"{NAME}.tasks").Task,
                DecisionResult=importlib.import_module(f"{NAME}.adapters.base").DecisionResult,
                summarize=importlib.import_module(f"{NAME}.summarize").summarize,
            )
        except (ImportError, AttributeError) as error:
            raise InputError(
                f"harness.name: {location.root / NAME} cannot be imported: {error}"
            ) from error
    imported = Path(str(runner.__file__)).resolve().parents[1]
    if imported != location.root:
        raise InputError(
            f"harness.path: {imported / NAME} was imported in this process before; two copies "
            "cannot be used at once"
        )
    # It reports on standard output, which belongs to our progress and tables.
    vars(runner)["print"] = _to_log
    return package


@contextmanager
def _importable(location: Location) -> Iterator[None]:
    """Find the package there and nowhere else; nothing is written beside it."""
    path, writes_nothing = list(sys.path), sys.dont_write_bytecode
    sys.path.insert(0, str(location.root))
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        sys.dont_write_bytecode = writes_nothing


def _to_log(*words: object, **_: object) -> None:
    log.info("%s", " ".join(map(str, words)))
