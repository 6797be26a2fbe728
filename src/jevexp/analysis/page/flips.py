"""The tasks that one side alone gets right, with what a reader needs to judge them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jevexp.analysis.page.numbers import Place
from jevexp.analysis.text import shortened
from jevexp.domain.json import dumps
from jevexp.domain.task import Kind, Task

# On the whole page; the rest is in the data.
MOST_FLIPS = 60
_FEWEST_A_SIDE = 2
_MOST_LETTERS = 6000


@dataclass(frozen=True, slots=True)
class Option:
    """One answer that a task allows; `shares` are the bars, in per cent of their full length."""

    label: str
    description: str | None
    gold: bool
    baseline: Place | None
    candidate: Place | None
    shares: tuple[str, str]


@dataclass(frozen=True, slots=True)
class TaskText:
    """What the model read."""

    family: str
    instructions: str
    state: str
    left_out: int


@dataclass(frozen=True, slots=True)
class FlipView:
    """One flip; `task` is None where the tasks are not here."""

    place: Place
    task: TaskText | None
    options: Sequence[Option]


@dataclass(frozen=True, slots=True)
class FlipsView:
    """The flips of one pair: what the candidate lost and gained, and how many are not shown."""

    pair: Place
    lost: Sequence[FlipView]
    gained: Sequence[FlipView]
    n_lost: int
    n_gained: int

    @property
    def left_out(self) -> int:
        """How many there are besides those that are shown."""
        return self.n_lost + self.n_gained - len(self.lost) - len(self.gained)


def flips_of(pairs: Place, tasks: Mapping[str, Task]) -> list[FlipsView]:
    """The flips of every pair, the first ones of each side."""
    if not len(pairs):
        return []
    most = max(_FEWEST_A_SIDE, MOST_FLIPS // len(pairs) // 2)
    return [_of_pair(pair, tasks, most) for pair in pairs]


def _of_pair(pair: Place, tasks: Mapping[str, Task], most: int) -> FlipsView:
    by_side: dict[str, list[Place]] = {"baseline": [], "candidate": []}
    for flip in pair["flips"]:
        by_side[flip["right"].raw].append(flip)
    lost, gained = by_side["baseline"], by_side["candidate"]
    return FlipsView(
        pair,
        [_view(flip, tasks) for flip in lost[:most]],
        [_view(flip, tasks) for flip in gained[:most]],
        len(lost),
        len(gained),
    )


def _view(flip: Place, tasks: Mapping[str, Task]) -> FlipView:
    task = tasks.get(flip["task_id"].raw)
    sides = (flip["baseline"], flip["candidate"])
    if task is None:
        labels = list(dict.fromkeys(label for side in sides for label in side.raw or ()))
        return FlipView(flip, None, [_option(label, None, False, sides) for label in labels])
    descriptions = _descriptions(task)
    options = [
        _option(label, descriptions.get(label), label == task.gold, sides) for label in task.labels
    ]
    return FlipView(flip, _text(task), options)


def _option(label: str, description: str | None, gold: bool, sides: Sequence[Place]) -> Option:
    places = [side[label] if side.raw and label in side.raw else None for side in sides]
    first, second = (f"{100 * place.raw if place else 0:.1f}%" for place in places)
    return Option(label, description, gold, places[0], places[1], (first, second))


def _text(task: Task) -> TaskText:
    state = task.state if isinstance(task.state, str) else dumps(task.state, indent=2)
    left_out = max(0, len(state) - _MOST_LETTERS)
    return TaskText(
        task.family, task.question.instructions, shortened(state, _MOST_LETTERS), left_out
    )


def _descriptions(task: Task) -> dict[str, str]:
    """What the question says about each label, as text."""
    criteria = task.question.criteria
    found: Mapping[str, Any]
    if isinstance(criteria, list):
        found = {str(level): text for level, text in enumerate(criteria)}
    elif task.kind is Kind.NOUL:
        found = {"no": (criteria or {}).get("false"), "yes": (criteria or {}).get("true")}
    else:
        found = criteria or {}
    return {
        label: text if isinstance(text, str) else dumps(text)
        for label, text in found.items()
        if text is not None
    }
