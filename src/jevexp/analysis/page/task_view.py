"""A task with the answers to it, as a reader sees it on the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jevexp.analysis.page.numbers import Place
from jevexp.analysis.text import shortened
from jevexp.core.task import Task, as_text

_MOST_LETTERS = 6000


@dataclass(frozen=True, slots=True)
class Share:
    """What one side gives an option; `width` is its bar's, in per cent of the full length."""

    place: Place | None
    width: str


@dataclass(frozen=True, slots=True)
class Option:
    """One answer that a task allows, with each side's share."""

    label: str
    description: str | None
    gold: bool
    shares: Sequence[Share]


@dataclass(frozen=True, slots=True)
class TaskText:
    """What the model read; `left_out` counts the characters of a long state that are not shown."""

    family: str
    instructions: str
    state: str
    left_out: int


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A flip or a mistake; `task` is None where the tasks are not here."""

    place: Place
    task: TaskText | None
    options: Sequence[Option]


def answer_view(place: Place, sides: Sequence[Place], tasks: Mapping[str, Task]) -> AnswerView:
    """The answers of `sides`, distributions or null, to the task that `place` names."""
    task = tasks.get(place["task_id"].raw)
    if task is None:
        labels = list(dict.fromkeys(label for side in sides for label in side.raw or ()))
        return AnswerView(place, None, [_option(label, None, False, sides) for label in labels])
    descriptions = task.question.descriptions
    options = [
        _option(label, descriptions.get(label) or None, label == task.gold, sides)
        for label in task.labels
    ]
    return AnswerView(place, _text(task), options)


def _option(label: str, description: str | None, gold: bool, sides: Sequence[Place]) -> Option:
    places = [side[label] if side.raw and label in side.raw else None for side in sides]
    shares = [Share(place, f"{100 * place.raw if place else 0:.1f}%") for place in places]
    return Option(label, description, gold, shares)


def _text(task: Task) -> TaskText:
    state = as_text(task.state)
    left_out = max(0, len(state) - _MOST_LETTERS)
    return TaskText(
        task.family, task.question.instructions, shortened(state, _MOST_LETTERS), left_out
    )
