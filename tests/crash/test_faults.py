"""What goes wrong around a run is one line and an exit status; what was answered is kept."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jevexp.cli.main import main
from jevexp.store import RunDirectory, RunStatus
from jevexp.verification import State, verify_run
from tests.crash import faults
from tests.crash.child import start
from tests.crash.faults import at_call

DEMO = ("dataset=demo", "caps.limit=6", "tracking=none")


@pytest.fixture
def small_disk(workplace: Path) -> Iterator[Path]:
    """A disk with room for a few tasks; for root alone."""
    disk = workplace / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def perform(
    happen: Callable[[], None] = lambda: None, *, place: str = "run", status: int = 1
) -> str:
    """Run six tasks; something happens during the third. Returns what was printed."""
    command = [*DEMO, f"hydra.run.dir={place}"]
    found = start(command, Path("log"), prepare=at_call(3, happen)).wait()
    printed = Path("log.out").read_text()
    assert found == status, printed
    assert "Traceback" not in printed
    return printed


def check_goes_on(
    run: Path, *, recorded: int, recovered: int = 0, state: State = State.INCOMPLETE
) -> None:
    """What was answered is there, and a resume asks only the rest."""
    assert len(list(RunDirectory(run).records())) == recorded
    assert verify_run(run).state is state
    assert main([f"resume={run}", "hydra.run.dir=again"]) == 0
    resumed = RunDirectory(Path("again")).read_manifest().resumed
    assert resumed is not None
    assert (len(resumed.adopted), len(resumed.recovered)) == (recorded + recovered, recovered)


def test_a_full_disk(workplace: Path) -> None:
    printed = perform(faults.no_more_room)
    assert "run: File too large; what was written until then is kept" in printed
    assert "never completed: 2 of 6 tasks have a record" in printed
    assert "go on with it: jevexp resume=run" in printed
    check_goes_on(Path("run"), recorded=2, recovered=len(list(RunDirectory(Path("run")).held())))


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    printed = perform(place=str(small_disk / "run"))
    assert "No space left on device; what was written until then is kept" in printed
    run = small_disk / "run"
    recorded = len(list(RunDirectory(run).records()))
    assert 0 < recorded < 6
    check_goes_on(run, recorded=recorded, recovered=len(list(RunDirectory(run).held())))


def test_no_file_handles_left(workplace: Path) -> None:
    printed = perform(faults.no_more_handles)
    assert "crashed: 2 of 6 tasks answered and valid" in printed
    assert "OSError: Too many open files" in printed
    check_goes_on(Path("run"), recorded=2, state=State.VERIFIED)


def test_a_directory_that_is_deleted(workplace: Path) -> None:
    printed = perform(faults.directory_deleted)
    assert "run: No such file or directory; it is gone" in printed
    assert not Path("run").exists()


def test_a_directory_that_is_replaced(workplace: Path) -> None:
    printed = perform(faults.directory_replaced)
    assert "run: No such file or directory" in printed
    # The folders that it has open have moved, and keep all of its answers.
    check_goes_on(Path("moved"), recorded=6)


def test_a_clock_that_runs_backwards(workplace: Path) -> None:
    command = [*DEMO, "hydra.run.dir=run"]
    assert start(command, Path("log"), prepare=faults.clock_runs_backwards).wait() == 0
    report = verify_run(Path("run"))
    assert report.state is State.VERIFIED, report
    records = list(RunDirectory(Path("run")).records())
    assert records[-1].ts < records[0].ts
    # Latencies are measured with another clock.
    assert all(0 <= record.latency_s < 60 for record in records)


def test_a_folder_that_cannot_be_written(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("")
    assert main([*DEMO, "hydra.run.dir=file/run"]) == 2
    assert capsys.readouterr().err.startswith("error: file/run: cannot be made: ")


def test_nobody_reads_the_output_any_more(workplace: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)

    def nobody() -> None:
        os.dup2(writer, 1)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115

    found = start([*DEMO, "hydra.run.dir=run"], Path("log"), prepare=nobody).wait()
    os.close(writer)
    assert found == 0
    assert RunDirectory(Path("run")).read_manifest().status is RunStatus.COMPLETE
