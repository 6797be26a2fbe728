"""The answers that a page shows: the first flips of every pair, or mistakes of one run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jevexp.analysis.report.numbers import JsonPointer
from jevexp.core.task import Task, as_text
from jevexp.untrusted.console import shortened

# On the whole page; the rest is in the data.
MOST_FLIPS = 60
MOST_MISTAKES = 30
_FEWEST_A_SIDE = 2
_MOST_LETTERS = 6000


@dataclass(frozen=True, slots=True)
class Share:
    """What one side gives an option; `width` is its bar's, in per cent of the full length."""

    place: JsonPointer | None
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

    place: JsonPointer
    task: TaskText | None
    options: Sequence[Option]


@dataclass(frozen=True, slots=True)
class FlipsView:
    """The flips of one pair: what the candidate lost and gained, and how many there are of each."""

    pair: JsonPointer
    lost: Sequence[AnswerView]
    gained: Sequence[AnswerView]
    n_lost: int
    n_gained: int

    @property
    def left_out(self) -> int:
        """How many there are besides those that are shown."""
        return self.n_lost + self.n_gained - len(self.lost) - len(self.gained)


def flips_of(pairs: JsonPointer, tasks: Mapping[str, Task]) -> list[FlipsView]:
    """The flips of every pair, the first ones of each side."""
    if not len(pairs):
        return []
    most = max(_FEWEST_A_SIDE, MOST_FLIPS // len(pairs) // 2)
    return [_of_pair(pair, tasks, most) for pair in pairs]


def mistakes_of(mistakes: JsonPointer, tasks: Mapping[str, Task]) -> list[AnswerView]:
    """The wrong answers of one run, the first ones."""
    first = list(mistakes)[:MOST_MISTAKES]
    return [answer_view(place, [place["probs"]], tasks) for place in first]


def _of_pair(pair: JsonPointer, tasks: Mapping[str, Task], most: int) -> FlipsView:
    by_side: dict[str, list[JsonPointer]] = {"baseline": [], "candidate": []}
    for flip in pair["flips"]:
        by_side[flip["right"].raw].append(flip)
    lost, gained = by_side["baseline"], by_side["candidate"]
    return FlipsView(
        pair,
        [_flip_view(flip, tasks) for flip in lost[:most]],
        [_flip_view(flip, tasks) for flip in gained[:most]],
        len(lost),
        len(gained),
    )


def answer_view(
    place: JsonPointer, sides: Sequence[JsonPointer], tasks: Mapping[str, Task]
) -> AnswerView:
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


def _option(
    label: str, description: str | None, gold: bool, sides: Sequence[JsonPointer]
) -> Option:
    places = [side[label] if side.raw and label in side.raw else None for side in sides]
    shares = [Share(place, f"{100 * place.raw if place else 0:.1f}%") for place in places]
    return Option(label, description, gold, shares)


def _text(task: Task) -> TaskText:
    state = as_text(task.state)
    left_out = max(0, len(state) - _MOST_LETTERS)
    return TaskText(
        task.family, task.question.instructions, shortened(state, _MOST_LETTERS), left_out
    )


def _flip_view(flip: JsonPointer, tasks: Mapping[str, Task]) -> AnswerView:
    return answer_view(flip, (flip["baseline"], flip["candidate"]), tasks)
