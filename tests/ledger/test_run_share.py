"""What a run keeps of a ledger that it shares."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import CapReached, LedgerError, Overcharged

META = {"task_id": "t", "adapter": "test"}
BASIS = {"task_id": "t", "basis": "unknown"}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    return tmp_path / "shared.jsonl"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "own.jsonl"


@pytest.fixture
def ledger(shared: Path, own: Path) -> Iterator[FileLedger]:
    with FileLedger(shared, 1.0, now=lambda: 5.0, own_rows=own) as opened:
        yield opened


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_keeps_the_cap_and_its_own_rows_and_nobody_elses(
    ledger: FileLedger, shared: Path, own: Path
) -> None:
    with FileLedger(shared, 0.9) as other:
        theirs = other.reserve(0.125, META)
        mine = ledger.reserve(0.25, META)
        other.settle(theirs, 0.0, BASIS)
        ledger.settle(mine, 0.125, BASIS)
    kept = rows(own)
    assert kept[0] == {"event": "cap", "cap_usd": 0.9, "ts": 5.0}
    assert kept[1:] == [row for row in rows(shared) if row.get("reservation_id") == mine]
    assert [row["event"] for row in kept] == ["cap", "reserve", "settle"]


def test_what_is_kept_is_a_ledger(ledger: FileLedger, shared: Path, own: Path) -> None:
    with FileLedger(shared, 5.0) as other:
        other.reserve(0.5, META)
    ledger.settle(ledger.reserve(0.25, META), 0.125, BASIS)
    ledger.reserve(0.25, META)
    with FileLedger(own, 15.0, read_only=True) as kept:
        assert kept.charged_usd == ledger.charged_here_usd == 0.375
        assert kept.cap_usd == 1.0


def test_the_cap_is_kept_also_when_nothing_could_be_reserved(ledger: FileLedger, own: Path) -> None:
    with pytest.raises(CapReached):
        ledger.reserve(2.0, META)
    with pytest.raises(CapReached):
        ledger.reserve(2.0, META)
    assert [row["event"] for row in rows(own)] == ["cap"]


def test_an_overcharge_is_kept(ledger: FileLedger, own: Path) -> None:
    reservation = ledger.reserve(0.25, META)
    with pytest.raises(Overcharged):
        ledger.settle(reservation, 0.5, BASIS)
    assert rows(own)[-1]["charged_usd"] == 0.5


def test_a_settlement_of_anothers_reservation_is_not_kept(
    ledger: FileLedger, shared: Path, own: Path
) -> None:
    with FileLedger(shared, 1.0) as other:
        ledger.settle(other.reserve(0.25, META), 0.125, BASIS)
    assert own.read_bytes() == b""


def test_a_row_is_in_the_shared_ledger_before_it_is_kept(
    ledger: FileLedger, shared: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every moment at which something became durable, what a kill would leave."""
    lengths: list[tuple[int, int]] = []
    fsync = os.fsync

    def watched(file: int) -> None:
        fsync(file)
        in_force = [row for row in rows(shared) if row["event"] != "cap"]
        kept = [row for row in rows(own) if row["event"] != "cap"]
        assert kept == in_force[: len(kept)]
        lengths.append((len(in_force), len(kept)))

    monkeypatch.setattr(os, "fsync", watched)
    for _ in range(2):
        ledger.settle(ledger.reserve(0.25, META), 0.125, BASIS)
    # The cap here and then there, and so each row.
    assert lengths == [
        (0, 0), (1, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (4, 3), (4, 4),
    ]  # fmt: skip


def test_a_reservation_that_could_not_be_kept_is_not_given_out(
    ledger: FileLedger, shared: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.settle(ledger.reserve(0.25, META), 0.125, BASIS)
    before = own.read_bytes()
    write = os.write
    with monkeypatch.context() as patch:
        calls = iter((None, 10))
        patch.setattr(os, "write", lambda file, data: write(file, data[: next(calls)]))
        with pytest.raises(LedgerError, match=r"own\.jsonl: the disk took only a part of a row"):
            ledger.reserve(0.25, META)
    assert own.read_bytes() == before
    # It stays reserved where the cap is.
    assert ledger.charged_usd == 0.375
    ledger.reserve(0.25, META)


def test_a_file_that_is_there_already_is_not_touched(own: Path) -> None:
    own.write_text("somebody's\n")
    shared = own.with_name("another.jsonl")
    with pytest.raises(FileExistsError):
        FileLedger(shared, 1.0, own_rows=own)
    assert own.read_text() == "somebody's\n"
    assert not shared.exists()
