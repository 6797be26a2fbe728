"""Gives earlier answers again, found by what is asked."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from jevexp.backends.replay.answers import read_answers
from jevexp.backends.replay.run import read_run
from jevexp.backends.replay.source import Source, asked
from jevexp.core.decision import Decision, Request
from jevexp.settings import ReplayBackend

COST_BASIS = "replayed_no_new_cost"


class Replay:
    """Answers and failures of an earlier run, or of a file, as they came.

    Where one question was asked several times, its answers come in their order, and the last one
    again for every further time.

    Raises:
        InputError: the source cannot be read, or is not as it was left.
    """

    cost_basis: str | None = COST_BASIS

    def __init__(self, settings: ReplayBackend) -> None:
        self.name = settings.name
        self._kind = settings.kind
        self._source = _read(settings)
        self._times: Counter[str] = Counter()

    def open(self, log_directory: Path) -> Self:
        """Start from the first answers."""
        del log_directory
        self._times.clear()
        return self

    def close(self) -> None:
        """Nothing is held."""

    def describe(self) -> dict[str, Any]:
        """The source, and the model that gave all its answers, where it was one."""
        return {
            "kind": self._kind,
            "model": self._source.model,
            "source": dict(self._source.description),
        }

    def decide(self, request: Request) -> Decision:
        """The earlier answer; a failure where the source was never asked this."""
        sent = request.wire()
        key = asked(request.state, request.question.wire())
        given = self._source.decisions.get(key)
        if given is None:
            model = self._source.model or self._kind
            return Decision(ok=False, model=model, error="not_in_source", request=sent)
        decision = given[min(self._times[key], len(given) - 1)]
        self._times[key] += 1
        return replace(decision, request=sent)


def _read(settings: ReplayBackend) -> Source:
    if settings.run is not None:
        return read_run(Path(settings.run).expanduser())
    return read_answers(Path(str(settings.answers)).expanduser())
