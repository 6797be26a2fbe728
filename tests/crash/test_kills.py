"""Killed anywhere, a run loses no answer and counts none twice; a short form of `make crash`."""

import random
from pathlib import Path

import pytest

from tests.crash.child import Kill
from tests.crash.fleet import fleet
from tests.crash.points import ONLY_RESUMED, POINTS
from tests.crash.trial import TRACKED, Tally, kills, trial

SEED = 7


@pytest.mark.parametrize(
    "point", [point for point in POINTS if point not in (*TRACKED, *ONLY_RESUMED)]
)
def test_a_kill_at_a_named_point(tmp_path: Path, point: str) -> None:
    random_ = random.Random(f"{SEED} {point}")
    nth = random_.randint(1, 8) if POINTS[point][1] else 1
    tally = Tally()
    trial(tmp_path / "trial", Kill(point, nth), tally, thorough=False, again=None)
    assert tally.faults == []
    assert tally.kills == 1


@pytest.mark.parametrize("point", ONLY_RESUMED)
def test_a_kill_while_answers_are_taken_over(tmp_path: Path, point: str) -> None:
    tally = Tally()
    first = Kill("between raw and settle", 4)
    trial(tmp_path / "trial", first, tally, thorough=False, again=Kill(point))
    assert tally.faults == []
    assert tally.kills == 2


def test_kills_at_random_times_also_of_what_was_resumed(tmp_path: Path) -> None:
    random_ = random.Random(SEED)
    tally = Tally()
    for number in range(3):
        first, again = (Kill(after_s=random_.uniform(0.1, 0.4)) for _ in range(2))
        trial(tmp_path / str(number), first, tally, thorough=number == 0, again=again)
    assert tally.faults == []


def test_eight_processes_on_one_ledger(tmp_path: Path) -> None:
    random_ = random.Random(SEED)
    tally = Tally()
    choices = kills(random_, each=0, at_random=4)
    fleet(tmp_path / "fleet", random_, choices, tally)
    assert tally.faults == []
    assert tally.answers_held == 8 * 8
