"""One ledger and several processes, some of which die."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import LedgerError

ROOT = Path(__file__).parents[2]


def spender(verb: str, ledger: Path, *, cap: float, amount: float) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.support.spender"),
            *(verb, str(ledger), str(cap), str(amount)),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


@contextmanager
def waiting(verb: str, ledger: Path, *, cap: float = 1.0, amount: float = 0.25) -> Iterator[None]:
    """A process that has done its part and waits; killed where it stands at the end."""
    with spender(verb, ledger, cap=cap, amount=amount) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


@pytest.mark.parametrize("count", [2, 8])
def test_processes_that_compete_spend_the_cap_and_no_more(tmp_path: Path, count: int) -> None:
    path = tmp_path / "ledger.jsonl"
    cap = 2.0
    processes = [spender("spend", path, cap=cap, amount=0.02) for _ in range(count)]
    done = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * count

    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["event"] for row in rows].count("cap") == 1
    reserved: dict[str, Fraction] = {}
    settled = Fraction(0)
    for row in rows:
        if row["event"] == "reserve":
            reserved[row["reservation_id"]] = Fraction(row["reserved_usd"])
        elif row["event"] == "settle":
            del reserved[row["reservation_id"]]
            settled += Fraction(row["charged_usd"])
        assert settled + sum(reserved.values()) <= Fraction(cap) + Fraction(1e-12)
    assert not reserved
    assert sum(row["event"] == "settle" for row in rows) == sum(done)
    # Nobody stopped while there was room for one more.
    assert settled + Fraction(0.02) * count > Fraction(cap)
    with FileLedger(path, cap) as ledger:
        assert ledger.charged_usd == float(settled)


def test_reservations_of_a_killed_process_stay_charged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with waiting("hold", path, amount=0.25):
        pass
    with FileLedger(path, 1.0) as ledger:
        assert ledger.charged_usd == 0.75
        assert ledger.charged_here_usd == 0


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with waiting("lock", path):
        pass
    with FileLedger(path, 1.0, lock_timeout_s=5) as ledger:
        ledger.reserve(0.25, {})


def test_a_lock_that_another_process_keeps_is_waited_for_and_no_longer_than_said(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.jsonl"
    with FileLedger(path, 1.0, lock_timeout_s=0.2) as ledger, waiting("lock", path):
        started = time.monotonic()
        with pytest.raises(
            LedgerError,
            match=r"process \d+ of user \w+ on .+ \(.*spender lock.*\) has held the lock for 0\.2",
        ):
            ledger.reserve(0.25, {})
        assert time.monotonic() - started >= 0.2
        with pytest.raises(LedgerError, match="has held the lock"):
            FileLedger(path, 1.0, lock_timeout_s=0.0)
    assert path.read_bytes() == b""
