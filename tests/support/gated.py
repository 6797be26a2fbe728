"""A provider in another process that stops at one of its tasks until a test lets it go on."""

from dataclasses import dataclass
from pathlib import Path

_MODULE = """
import time
from pathlib import Path

from jevexp.core.decision import Decision

HERE = Path(__file__).parent


class Gated:
    name = "gated"
    cost_basis = "own_machine"
    max_concurrency = 1

    def __init__(self, task):
        self._left = task

    def open(self, log_directory):
        return self

    def close(self): ...

    def describe(self):
        return {"model": "gated-1"}

    def decide(self, request):
        self._left -= 1
        if self._left == 0:
            (HERE / "reached").touch()
            while not (HERE / "open").exists():
                time.sleep(0.01)
        options = request.question.options
        return Decision(
            ok=True,
            model="gated-1",
            probs=dict.fromkeys(options, 1 / len(options)),
            request=request.wire(),
            response={},
        )
"""


@dataclass(frozen=True)
class Gate:
    """Where the provider waits."""

    folder: Path

    def is_reached(self) -> bool:
        """Whether the task is with the provider."""
        return (self.folder / "reached").exists()

    def open(self) -> None:
        """Let it go on."""
        (self.folder / "open").touch()


def gated(folder: Path, *, task: int) -> tuple[list[str], Gate]:
    """Overrides for `start` in this folder, and the gate before the answer to the task, from 1."""
    (folder / "gated.py").write_text(_MODULE)
    overrides = ["backend=python", "backend.factory=gated:Gated", f"+backend.options.task={task}"]
    return overrides, Gate(folder)
