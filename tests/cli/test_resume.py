"""`resume=` on the command line: runs and sweeps that were killed, and what may change."""

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.main import main
from tests.crash.child import Kill, start
from tests.crash.faults import at_call
from tests.support.cli import jevexp, only_run
from tests.support.runs import make_killed_run, noul_tasks

DEMO = ("dataset=demo", "tracking=none", "caps.limit=6")


def killed_with(raw_files: int, *command: str) -> None:
    """Run this, and kill it once so many tasks have their raw evidence."""
    kill = Kill("between raw and settle", raw_files)
    assert start(command, Path("log"), kill).wait() == -signal.SIGKILL, Path("log.out").read_text()


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def resumed(place: str = "outputs/20*/*") -> Path:
    """The run that resumed another one."""
    (found,) = [
        path.parent for path in Path().glob(f"{place}/manifest.json") if read(path)["resumed"]
    ]
    return found


def test_a_killed_run_goes_on_in_a_directory_of_its_own(workplace: Path) -> None:
    killed_with(3, *DEMO, "backend.latency_s=0.02")
    killed = only_run(workplace / "outputs")
    done = jevexp(f"resume={killed}", "caps.cap_usd=3", cwd=workplace)

    assert done.status == 0, done.err
    assert f"resuming {killed}: " in done.out
    run = resumed()
    manifest = read(run / "manifest.json")
    assert manifest["status"] == "complete"
    assert manifest["config"]["overrides"] == [f"resume={killed}", "caps.cap_usd=3"]
    assert manifest["config"]["resolved"]["backend"]["latency_s"] == 0.02
    whole = (run / "results.jsonl").read_bytes().splitlines()
    part = (killed / "results.jsonl").read_bytes().splitlines()
    assert (len(whole), whole[: len(part)]) == (6, part)
    assert not (killed / "checksums.sha256").exists()


def test_a_refused_resume_leaves_nothing_behind(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*DEMO, "caps.limit=2"]) == 0
    run = only_run(workplace / "outputs")
    before = sorted(workplace.rglob("*"))
    capsys.readouterr()
    assert main([f"resume={run}"]) == 2
    assert main([f"resume={run}", f"resume={run}"]) == 2
    assert main(["-m", f"resume={run}"]) == 2
    assert main(["resume=outputs"]) == 2
    assert main(["resume=nowhere"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2][:40] for line in lines] == [
        f"resume: {run}"[:40],
        "resume: given twice",
        "resume: takes its configuration from the"[:40],
        "resume: outputs: is no run, and no sweep"[:40],
        "resume: nowhere: no such folder; give a "[:40],
    ]
    assert sorted(workplace.rglob("*")) == before


SWEEP = ("-m", "dataset=demo", "tracking=none", "caps.limit=4", "backend.seed=1,2,3")


def sweeps(workplace: Path) -> list[Path]:
    return sorted(workplace.glob("outputs/sweeps/20*/*"), key=lambda path: path.stat().st_ctime)


def test_a_killed_sweep_goes_on_as_a_whole(workplace: Path) -> None:
    # In the second of its runs.
    killed_with(5, *SWEEP)
    (killed,) = sweeps(workplace)
    spent = sum(
        row["reserved_usd"] for row in rows(killed / "ledger.jsonl") if row["event"] == "reserve"
    )
    done = jevexp(f"resume={killed}", cwd=workplace)

    assert done.status == 0, done.err
    assert "1 of 3 runs have ended, 1 go on, 1 start" in done.out
    assert "3 of 3 runs complete" in done.out
    again = sweeps(workplace)[-1]
    assert sorted(path.name for path in again.iterdir() if path.is_dir()) == [
        "1-demo-fake-fake",
        "2-demo-fake-fake",
    ]
    assert rows(again / "ledger.jsonl")[0]["cap_usd"] == pytest.approx(15.0 - spent)
    assert read(again / "1-demo-fake-fake/manifest.json")["resumed"]["run"] == "1-demo-fake-fake"
    assert read(again / "2-demo-fake-fake/manifest.json")["resumed"] is None
    planned = read(again / "sweep.json")
    assert planned["resumed"] == str(killed)
    assert [run["ended_in"] for run in planned["runs"]] == [
        str(killed / "0-demo-fake-fake"),
        None,
        None,
    ]
    assert jevexp(f"resume={again}", cwd=workplace).status == 2


def test_twelve_runs_of_one_configuration_are_gone_on_with_by_their_numbers(
    workplace: Path,
) -> None:
    same = f"backend.seed={','.join(['1'] * 12)}"
    killed_with(12, "-m", "dataset=demo", "tracking=none", "caps.limit=1", same)
    (killed,) = sweeps(workplace)

    assert main([f"resume={killed}"]) == 0

    again = sweeps(workplace)[-1]
    # As texts, 10 and 11 come before 2.
    assert [run["ended_in"] for run in read(again / "sweep.json")["runs"]] == [
        *(str(killed / f"{number}-demo-fake-fake") for number in range(11)),
        None,
    ]
    (last,) = (path for path in again.iterdir() if path.is_dir())
    assert last.name == "11-demo-fake-fake"
    assert read(last / "manifest.json")["resumed"]["path"] == str(killed / last.name)


def test_an_interrupted_sweep_starts_no_further_run_and_is_resumed_twice(workplace: Path) -> None:
    interrupt(workplace, SWEEP, nth=2)
    first = sweeps(workplace)[-1]
    # Two tasks of the first run are left, then the second one.
    interrupt(workplace, [f"resume={first}"], nth=4)
    second = sweeps(workplace)[-1]
    done = jevexp(f"resume={second}", cwd=workplace)

    assert done.status == 0, done.err
    assert "1 of 3 runs have ended, 1 go on, 1 start" in done.out
    assert "3 of 3 runs complete" in done.out


def interrupt(workplace: Path, command: Sequence[str], *, nth: int) -> None:
    """Run this, with a Ctrl-C while its nth task is with the provider."""
    prepare = at_call(nth, lambda: os.kill(os.getpid(), signal.SIGINT))
    assert start(command, Path("log"), prepare=prepare).wait() == 130
    assert "of 3 runs complete" in Path("log.out").read_text()


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "results.jsonl", "early.jsonl", "ledger.jsonl", "checksums.sha256",
     "summary.json", "pending/x.json", "raw/x.json", "upstream/results.jsonl"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_strangers_pipe_or_link_is_one_line_at_once(
    workplace: Path, capsys: pytest.CaptureFixture[str], name: str, kind: str
) -> None:
    make_killed_run(workplace / "given", noul_tasks(3), attempted=1)
    path = workplace / "given" / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")

    assert main(["resume=given"]) == 2

    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("error: ")
    assert [path.name for path in workplace.iterdir()] == ["given"]
