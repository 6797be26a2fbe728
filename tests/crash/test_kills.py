"""Killed anywhere, a run loses no answer and counts none twice; a short form of `make crash`."""

import random
from pathlib import Path

import pytest

from tests.crash.child import Kill
from tests.crash.fleet import fleet
from tests.crash.points import ONLY_RESUMED, POINTS
from tests.crash.trial import Tally, kills, trial

SEED = 7
# The long version has all of them.
AT_THE_END = ("between record and manifest", "before the manifest is in place", "inside the seal")
CHOSEN = [point for point, (_, once_a_task) in POINTS.items() if once_a_task or point in AT_THE_END]


@pytest.mark.parametrize(("point", "later"), [*zip(CHOSEN[::2], CHOSEN[1::2], strict=True)])
def test_kills_at_named_points_of_a_run_and_of_what_resumes_it(
    tmp_path: Path, point: str, later: str
) -> None:
    nth = random.Random(f"{SEED} {point}").randint(1, 6)
    tally = Tally()
    trial(tmp_path / "trial", Kill(point, nth), tally, thorough=False, again=Kill(later))
    assert tally.faults == []
    assert tally.kills == 2


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
    first, again = (Kill(after_s=random_.uniform(0.1, 0.4)) for _ in range(2))
    trial(tmp_path / "trial", first, tally, thorough=True, again=again)
    assert tally.faults == []


def test_eight_processes_on_one_ledger(tmp_path: Path) -> None:
    random_ = random.Random(SEED)
    tally = Tally()
    choices = kills(random_, each=0, at_random=4)
    fleet(tmp_path / "fleet", random_, choices, tally)
    assert tally.faults == []
    assert tally.answers_held == 8 * 8
