"""What every provider offers, and what some offer besides."""

from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from jevexp.core.decision import Decision, Request
from jevexp.errors import InputError


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

        Raises:
            InputError: the provider cannot be reached or started. Nothing is left running.
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
class Concurrent(Protocol):
    """A provider that several threads may ask at once; one that is none takes one at a time."""

    @property
    def max_concurrency(self) -> int | None:
        """How many requests it takes at once, None for any number; final once it is open."""


def check_concurrency(backend: Backend, wanted: int) -> None:
    """Refuse more requests at once than a provider takes.

    Raises:
        InputError: it takes fewer.
    """
    if wanted == 1:
        return
    most = backend.max_concurrency if isinstance(backend, Concurrent) else 1
    if most is not None and most < wanted:
        raise InputError(
            f"runner.concurrency: {backend.name} takes {most} request{'s' * (most > 1)} at a time, "
            f"found {wanted}; set runner.concurrency={most}"
        )
