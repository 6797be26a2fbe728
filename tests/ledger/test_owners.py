"""Who made a reservation, and whether that process still lives."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jevexp.ledger.file import FileLedger
from jevexp.ledger.owners import LedgerOwner, owner_id


def this_process() -> LedgerOwner:
    return LedgerOwner.here(None, "0" * 12)


def test_a_number_that_another_process_has_now_is_not_taken_for_the_dead_one() -> None:
    here = this_process()
    assert here.alive is True
    assert LedgerOwner.model_validate(here.model_dump() | {"started": "1"}).alive is False
    assert LedgerOwner.model_validate(here.model_dump() | {"pid": 2**22 + 1}).alive is False
    assert LedgerOwner.model_validate(here.model_dump() | {"machine": "elsewhere"}).alive is None


def test_a_process_that_was_killed_and_not_waited_for_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        stat = Path(f"/proc/{child.pid}/stat").read_text()
        started = stat.rpartition(")")[2].split()[19]
        owner = LedgerOwner.model_validate(
            this_process().model_dump() | {"pid": child.pid, "started": started}
        )
        alive = [owner.alive]
        child.kill()
        while alive[-1]:
            alive.append(owner.alive)
        assert (alive[0], alive[-1], child.returncode) == (True, False, None)


def test_a_start_is_in_clock_ticks_of_the_machine_as_in_proc() -> None:
    stat = Path(f"/proc/{os.getpid()}/stat").read_text()
    started = this_process().started
    assert started is not None
    assert abs(int(started) - int(stat.rpartition(")")[2].split()[19])) <= 2


@pytest.mark.parametrize(
    ("after_s", "alive"), [(0.0, True), (-1.5, True), (1.5, True), (2.5, False), (-2.5, False)]
)
def test_a_clock_that_is_set_between_two_looks_makes_nobody_dead(
    after_s: float, alive: bool
) -> None:
    here = this_process()
    ticks = int(str(here.started)) + round(after_s * os.sysconf("SC_CLK_TCK"))
    assert LedgerOwner.model_validate(here.model_dump() | {"started": str(ticks)}).alive is alive


@pytest.mark.parametrize("started", ["", "soon", "1" * 5000])
def test_a_start_that_is_no_number_is_nobodys(started: str) -> None:
    here = this_process()
    assert LedgerOwner.model_validate(here.model_dump() | {"started": started}).alive is False


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 10**30])
def test_a_number_that_no_process_has_is_dead(pid: int) -> None:
    assert LedgerOwner.model_validate(this_process().model_dump() | {"pid": pid}).alive is False


def test_without_proc_a_process_is_alive_as_long_as_its_number_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path))
        fields = this_process().model_dump()
        assert fields["started"] is None
        owner = LedgerOwner.model_validate(fields | {"pid": child.pid, "started": "12345"})
        assert owner.alive is True
        child.communicate(b"\n")
        assert owner.alive is False


def test_a_shared_file_knows_its_sessions_and_a_torn_line_is_nobody(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    (tmp_path / "ledger.jsonl.sessions").write_text('{"id": "torn", "ru\n')
    run = tmp_path / "run"
    run.mkdir()
    with FileLedger(path, 1.0, own_rows=run / "ledger.jsonl") as ledger:
        name = ledger.reserve(0.25, {})
        (owner,) = ledger.owners().values()
    assert owner.id == owner_id(name)
    assert owner.run == str(run)
    assert len(name) == 32
    assert int(name, 16)


def test_a_ledger_of_one_run_has_no_second_file(tmp_path: Path) -> None:
    with FileLedger(tmp_path / "ledger.jsonl", 1.0) as ledger:
        ledger.reserve(0.25, {})
        assert ledger.owners() == {}
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.jsonl"]


def test_a_ledger_of_one_run_does_not_look_at_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looked(*_: object) -> None:
        raise AssertionError("psutil takes a while to import")

    monkeypatch.setattr(LedgerOwner, "here", looked)
    with FileLedger(tmp_path / "ledger.jsonl", 1.0) as ledger:
        assert owner_id(ledger.reserve(0.25, {})) == owner_id(ledger.reserve(0.25, {}))


@pytest.mark.parametrize(
    ("error", "alive"),
    [
        (psutil.AccessDenied(1), True),
        (OSError(), True),
        (RuntimeError(), True),
        (psutil.ZombieProcess(1), False),
    ],
)
def test_a_process_that_cannot_be_looked_at_is_alive_unless_it_ended(
    error: Exception, alive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = this_process()

    def refuse(_pid: int) -> None:
        raise error

    monkeypatch.setattr(psutil, "Process", refuse)
    assert here.alive is alive
