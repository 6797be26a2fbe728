"""The tasks that one side alone gets right, or one run wrong: the first ones of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jevexp.analysis.page.numbers import Place
from jevexp.analysis.page.task_view import AnswerView, answer_view
from jevexp.core.task import Task

# On the whole page; the rest is in the data.
MOST_FLIPS = 60
MOST_MISTAKES = 30
_FEWEST_A_SIDE = 2


@dataclass(frozen=True, slots=True)
class FlipsView:
    """The flips of one pair: what the candidate lost and gained, and how many there are of each."""

    pair: Place
    lost: Sequence[AnswerView]
    gained: Sequence[AnswerView]
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


def mistakes_of(mistakes: Place, tasks: Mapping[str, Task]) -> list[AnswerView]:
    """The wrong answers of one run, the first ones."""
    first = list(mistakes)[:MOST_MISTAKES]
    return [answer_view(place, [place["probs"]], tasks) for place in first]


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


def _view(flip: Place, tasks: Mapping[str, Task]) -> AnswerView:
    return answer_view(flip, (flip["baseline"], flip["candidate"]), tasks)
