"""Killed anywhere, a run loses no answer and counts none twice; a short form of `make crash`."""

import random
import signal
from pathlib import Path

import pytest

from jevexp.cli.main import main
from jevexp.store import RunDirectory
from tests.crash.child import Kill, Log, start
from tests.crash.fleet import fleet
from tests.crash.points import NO_RUN_YET, NOTHING_TAKEN_OVER, POINTS
from tests.crash.trial import DEMO, TASKS, Tally, kills, trial

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


@pytest.mark.parametrize("point", NOTHING_TAKEN_OVER)
def test_a_kill_before_answers_are_taken_over(tmp_path: Path, point: str) -> None:
    tally = Tally()
    first = Kill("between raw and settle", 4)
    trial(tmp_path / "trial", first, tally, thorough=False, again=Kill(point))
    assert tally.faults == []
    assert tally.kills == 2


def sweep_killed_twice(folder: Path) -> tuple[Path, Path]:
    """Two sittings: killed with four answers in its first run, and before any were taken over."""
    first, second = folder / "first", folder / "second"
    command = ["-m", *DEMO, "backend.seed=1,2", "tracking=none", f"hydra.sweep.dir={first}"]
    kill = Kill("between raw and settle", 4)
    assert start(command, folder / "log", kill).wait(kill) == -signal.SIGKILL
    command = [f"resume={first}", f"hydra.sweep.dir={second}"]
    kill = Kill(NO_RUN_YET)
    assert start(command, folder / "log", kill).wait(kill) == -signal.SIGKILL
    return first, second


def test_a_sweep_goes_on_with_what_a_killed_sitting_had_not_taken_over(workplace: Path) -> None:
    first, second = sweep_killed_twice(workplace)
    (cut_off,) = (path.name for path in second.iterdir() if path.is_dir())
    assert not (second / cut_off / "manifest.json").exists()

    assert main([f"resume={second}", "hydra.sweep.dir=third"]) == 0
    resumed = RunDirectory(Path("third", cut_off)).read_manifest().resumed
    assert resumed is not None
    assert resumed.path == str(first / cut_off)
    assert len(resumed.adopted) == 4
    # The answers of the first sitting, and those of the third: none was asked twice.
    asked = Log(workplace / "log").read().asked
    assert asked.total() == 4
    assert len(list(RunDirectory(Path("third", cut_off)).records())) == TASKS
    assert main([f"resume={second}", "hydra.sweep.dir=fourth"]) == 0


def test_a_run_that_was_killed_before_it_held_anything_says_what_to_resume(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kill = Kill(NO_RUN_YET)
    start([*DEMO, "tracking=none", "hydra.run.dir=run"], Path("log"), kill).wait(kill)
    assert main(["resume=run"]) == 2
    assert capsys.readouterr().err == (
        "error: resume: run: was killed before it asked anything; if it went on with another run, "
        "resume that one, which still holds every answer; else start it anew\n"
    )


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
