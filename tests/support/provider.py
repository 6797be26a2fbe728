"""A provider in this process that does what a test says."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from jevexp.core.decision import Decision, Request

Step = Decision | BaseException | Callable[[Request], Decision]


class Provider:
    """Gives its steps in order; the last one again and again. `received` lists requests."""

    name = "provider"

    def __init__(self, *steps: Step, cost_basis: str | None = None) -> None:
        self.cost_basis = cost_basis
        self.received: list[Request] = []
        self.steps: Sequence[Step] = steps

    def open(self, log_directory: Path) -> Self:
        del log_directory
        return self

    def close(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"model": "m-1"}

    def decide(self, request: Request) -> Decision:
        step = self.steps[min(len(self.received), len(self.steps) - 1)]
        self.received.append(request)
        if isinstance(step, BaseException):
            raise step
        return step if isinstance(step, Decision) else step(request)


class Estimating(Provider):
    """Knows what a request may cost."""

    def __init__(self, estimate: float | None, *steps: Step) -> None:
        super().__init__(*steps)
        self._estimate = estimate

    def reserve_estimate(self, request: Request) -> float | None:
        del request
        return self._estimate


class Preparing(Provider):
    """Has something to do before the clock starts."""

    def __init__(self, prepare: Callable[[Request], None], *steps: Step) -> None:
        super().__init__(*steps)
        self._prepare = prepare

    def prepare(self, request: Request) -> None:
        self._prepare(request)
