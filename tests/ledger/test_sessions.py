"""Who made a reservation, and whether that process still lives."""

import subprocess
import sys
from pathlib import Path

from jevexp.ledger import FileLedger, OwnRows
from jevexp.ledger.sessions import Session, session_of


def test_a_number_that_another_process_has_now_is_not_taken_for_the_dead_one() -> None:
    here = Session.here(None)
    assert here.alive is True
    assert Session.of(here.fields() | {"started": "1"}).alive is False
    assert Session.of(here.fields() | {"pid": 2**22 + 1}).alive is False
    assert Session.of(here.fields() | {"machine": "elsewhere"}).alive is None


def test_a_process_that_was_killed_and_not_waited_for_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        stat = Path(f"/proc/{child.pid}/stat").read_text()
        started = stat.rpartition(")")[2].split()[19]
        session = Session.of(Session.here(None).fields() | {"pid": child.pid, "started": started})
        alive = [session.alive]
        child.kill()
        while alive[-1]:
            alive.append(session.alive)
        assert (alive[0], alive[-1], child.returncode) == (True, False, None)


def test_a_shared_file_knows_its_sessions_and_a_torn_line_is_nobody(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    (tmp_path / "ledger.jsonl.sessions").write_text('{"id": "torn", "ru\n')
    run = tmp_path / "run"
    run.mkdir()
    with FileLedger(path, 1.0, own_rows=OwnRows(run / "ledger.jsonl")) as ledger:
        name = ledger.reserve(0.25, {})
        (session,) = ledger.sessions().values()
    assert session.id == session_of(name)
    assert session.run == str(run)
    assert len(name) == 32
    assert int(name, 16)


def test_a_ledger_of_one_run_has_no_second_file(tmp_path: Path) -> None:
    with FileLedger(tmp_path / "ledger.jsonl", 1.0) as ledger:
        ledger.reserve(0.25, {})
        assert ledger.sessions() == {}
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.jsonl"]
