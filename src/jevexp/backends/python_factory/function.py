"""A plain function as a backend: request in, probabilities out."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from jevexp.core.decision import Decision, Request
from jevexp.settings import PythonBackend


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
