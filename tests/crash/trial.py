"""One trial: a run is killed, looked at, resumed, maybe killed again, and looked at as a whole."""

import random
import shutil
from collections.abc import Collection, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from jevexp.store import RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import MANIFEST
from tests.crash.child import NAMES, Kill, Log, start
from tests.crash.oracle import books, exported, reads_cleanly, run_directories, union, verified
from tests.crash.points import BEFORE_TRACKING, ONLY_RESUMED, POINTS, WHILE_TRACKING

TASKS = 8
DEMO = ("dataset=demo", f"caps.limit={TASKS}", "backend.latency_s=0.002")
TRACKED = (BEFORE_TRACKING, WHILE_TRACKING)
# Never resumed more often than this; a trial that needs more has a fault.
MOST_SESSIONS = 12


@dataclass
class Tally:
    """What came of the trials."""

    kills: int = 0
    answers_held: int = 0
    recovered: int = 0
    faults: list[str] = field(default_factory=list)


def kills(
    random_: random.Random, *, each: int, at_random: int, without: Collection[str] = ()
) -> list[Kill]:
    """Kills at every point, `each` times at random calls, and some at random times."""
    chosen = [
        Kill(point, random_.randint(1, TASKS) if once_a_task else 1)
        for point, (_, once_a_task) in POINTS.items()
        if point not in (*without, *ONLY_RESUMED)
        for _ in range(each)
    ]
    chosen += [Kill(after_s=random_.uniform(0.15, 0.6)) for _ in range(at_random)]
    random_.shuffle(chosen)
    return chosen


def trial(folder: Path, kill: Kill, tally: Tally, *, thorough: bool, again: Kill | None) -> None:
    """Kill a run, resume it (killing that too where `again` says so) and check everything."""
    tally.faults += [f"{kill}: {fault}" for fault in _trial(folder, kill, tally, thorough, again)]
    shutil.rmtree(folder)


def _trial(folder: Path, kill: Kill, tally: Tally, thorough: bool, again: Kill | None) -> list[str]:
    folder.mkdir()
    with chdir(folder):
        tracked = "tracking=mlflow" if kill.point in TRACKED else "tracking=none"
        log = Log(Path("log"))
        command = [*DEMO, tracked, _place(0)]
        faults = _killed(start(command, log.path, kill).wait(kill), kill, tally)
        for session in range(MOST_SESSIONS):
            runs = run_directories(Path("outputs"))
            faults += _check_killed(runs[-1:], thorough)
            # A session that was killed before its first manifest holds nothing: the one before it
            # is resumed once more, if there is one.
            begun = [run for run in runs if (run / MANIFEST).exists()]
            if not begun:
                command = [*DEMO, "tracking=none", _place(session + 1)]
            elif ended(begun[-1]):
                faults += exported(begun[-1]) if kill.point in TRACKED else []
                return faults + _whole(runs, log, tally, thorough)
            else:
                command = [f"resume={begun[-1]}", "tracking=none", _place(session + 1)]
            then = again if session == 0 else None
            status = start(command, log.path, then).wait(then)
            if then is not None and status < 0:
                tally.kills += 1
            elif status != 0:
                return [*faults, f"{command[0]} came to {status}: {Path('log.out').read_text()}"]
    return [*faults, f"not complete after {MOST_SESSIONS} sessions"]


def _place(session: int) -> str:
    # Names in the order of the sessions, also of two in one second.
    return f"hydra.run.dir=outputs/day/{session:02}"


def _killed(status: int, kill: Kill, tally: Tally) -> list[str]:
    if status < 0:
        tally.kills += 1
        return []
    # It may have ended before its time was up; a named point is always reached.
    return [] if kill.point is None and status == 0 else [f"was not killed: {status}"]


def _check_killed(runs: Sequence[Path], thorough: bool) -> list[str]:
    faults: list[str] = []
    for run in runs:
        if (run / MANIFEST).exists():
            faults += verified(run, sealed=(run / CHECKSUMS).exists())
            faults += reads_cleanly(Path("outputs"), run) if thorough else []
    return faults


def ended(run: Path) -> bool:
    """Whether a session came to the end of its run."""
    if not (run / MANIFEST).exists():
        return False
    manifest = RunDirectory(run).read_manifest()
    return manifest.status is RunStatus.COMPLETE and (run / CHECKSUMS).exists()


def _whole(runs: Sequence[Path], log: Log, tally: Tally, thorough: bool) -> list[str]:
    faults = union(list(NAMES.values())[:TASKS], runs[-1], log.read()) + books(log, runs)
    resumed = RunDirectory(runs[-1]).read_manifest().resumed
    tally.answers_held += len(log.held)
    tally.recovered += len(resumed.recovered) if resumed else 0
    if thorough and len(runs) > 1 and (runs[0] / MANIFEST).exists():
        faults += reads_cleanly(Path("outputs"), runs[0], compare_with=runs[-1])
    return faults
