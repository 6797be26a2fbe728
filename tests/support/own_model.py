"""A person's own model, as `backend.factory` names it in tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from jevexp.core.decision import Decision, Request

NOT_CALLABLE = "a text"


class Own:
    """The first option with probability `top`, the others alike."""

    name = "own"
    cost_basis: str | None = "own_machine"
    max_concurrency: int | None = None

    def __init__(self, top: float = 0.9) -> None:
        self._top = top
        self.opened = 0

    def open(self, log_directory: Path) -> Self:
        del log_directory
        self.opened += 1
        return self

    def close(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"model": "own-1", "top": self._top}

    def decide(self, request: Request) -> Decision:
        options = request.question.options
        if not options:
            return Decision(ok=False, model="own-1", error="options_unknown")
        probs = shares(options, self._top)
        return Decision(
            ok=True,
            model="own-1",
            probs=probs,
            usage={"input_tokens": 3, "output_tokens": 1},
            request=request.wire(),
            response={"shares": probs},
        )


class Careful(Own):
    """One that prepares, and knows what a request may cost."""

    prepared = 0

    def prepare(self, request: Request) -> None:
        del request
        self.prepared += 1

    def reserve_estimate(self, request: Request) -> float | None:
        del request
        return 0.5


class Half:
    """Lacks most of what a backend has."""

    name = "half"

    def decide(self, request: Request) -> None: ...


class Answers(Own):
    """Answers with whatever it is given."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    def decide(self, request: Request) -> Any:
        return self._answer

    def describe(self) -> Any:
        return self._answer


def function(top: float = 0.9) -> Callable[[Request], dict[str, float]]:
    """A plain function instead of a backend."""
    return lambda request: shares(request.question.options, top)


def shares(options: tuple[str, ...], top: float) -> dict[str, float]:
    first, *others = options
    if not others:
        return {first: 1.0}
    return {first: top, **dict.fromkeys(others, (1 - top) / len(others))}


def nothing() -> None:
    """Makes nothing at all."""


def secretive(key: str = "hunter2") -> Own:
    """Cannot be made, and says too much about why."""
    raise RuntimeError(f"refused for {key}")


def leaving() -> Own:
    """Tries to end the whole process."""
    raise SystemExit(0)
