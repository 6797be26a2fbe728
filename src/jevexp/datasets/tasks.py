"""The tasks of a dataset, kept small."""

from collections.abc import Iterator, Sequence
from typing import overload

from jevexp.core.json import loads
from jevexp.core.task import Task


class Tasks(Sequence[Task]):
    """Checked tasks in their order, each made again from its line whenever it is looked at.

    A task as objects takes about eight times the memory of its line, and most of a run looks at one
    task at a time; making one again takes less than a tenth of a millisecond.

    Args:
        lines: a task file's lines, each of which was found to be a task.
    """

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines

    @overload
    def __getitem__(self, index: int) -> Task: ...

    @overload
    def __getitem__(self, index: slice) -> "Tasks": ...

    def __getitem__(self, index: int | slice) -> "Task | Tasks":
        if isinstance(index, slice):
            return Tasks(self._lines[index])
        return Task.model_validate(loads(self._lines[index]))

    def __iter__(self) -> Iterator[Task]:
        return (Task.model_validate(loads(line)) for line in self._lines)

    def __len__(self) -> int:
        return len(self._lines)
