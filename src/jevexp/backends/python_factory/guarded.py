"""A person's own backend as the runner can rely on it: what it returns has the right types."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from jevexp.backends.protocol import Backend, Concurrent, Estimates, Prepares
from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.json import representable
from jevexp.errors import InputError
from jevexp.settings import PythonBackend

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
