"""The ledger's rules, in one process; what several processes do to it is the next file's."""

import json
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import CapReached, LedgerError, Overcharged

META = {"task_id": "t", "adapter": "test"}
BASIS = {"task_id": "t", "basis": "unknown"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def ledger(path: Path) -> Iterator[FileLedger]:
    with FileLedger(path, 1.0, now=lambda: 5.0) as opened:
        yield opened


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def pinned(*written: dict[str, Any]) -> str:
    """Rows as the pinned harness writes them."""
    return "".join(json.dumps(row) + "\n" for row in written)


CAP = {"event": "cap", "cap_usd": 0.1, "ts": 1.0}
RESERVE = {
    "event": "reserve",
    "reservation_id": "0f" * 16,
    "reserved_usd": 0.04,
    "ts": 2.0,
    "meta": {"task_id": "möglich ☃", "adapter": "other"},
}
SETTLE = {
    "event": "settle",
    "reservation_id": "0f" * 16,
    "charged_usd": 0.01,
    "ts": 3.0,
    "meta": {"task_id": "möglich ☃", "basis": "unknown"},
}


# Rows


def test_an_opened_ledger_is_empty_until_something_is_reserved(
    ledger: FileLedger, path: Path
) -> None:
    assert path.read_bytes() == b""
    assert ledger.charged_usd == 0
    assert ledger.cap_usd == 1.0


def test_rows_have_the_benchmarks_fields_in_its_order(ledger: FileLedger, path: Path) -> None:
    reservation = ledger.reserve(0.25, META)
    ledger.settle(reservation, 0.125, BASIS)
    assert [list(row.items()) for row in rows(path)] == [
        [("event", "cap"), ("cap_usd", 1.0), ("ts", 5.0)],
        [
            ("event", "reserve"),
            ("reservation_id", reservation),
            ("reserved_usd", 0.25),
            ("ts", 5.0),
            ("meta", META),
        ],
        [
            ("event", "settle"),
            ("reservation_id", reservation),
            ("charged_usd", 0.125),
            ("ts", 5.0),
            ("meta", BASIS),
        ],
    ]


def test_an_open_reservation_says_what_it_is_for(path: Path) -> None:
    path.write_text(pinned(CAP, RESERVE, RESERVE | {"reservation_id": "1f" * 16, "meta": "?"}))
    with FileLedger(path, 1.0, read_only=True) as ledger:
        statement = ledger.statement()
    assert [
        (open_.reservation_id, open_.usd, open_.ts, open_.task_id, open_.adapter)
        for open_ in statement.open
    ] == [
        ("0f" * 16, 0.04, 2.0, "möglich ☃", "other"),
        ("1f" * 16, 0.04, 2.0, None, None),
    ]
    assert (statement.cap_usd, statement.reservations) == (0.1, 2)


def test_every_row_is_forced_to_disk(
    ledger: FileLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: sizes.append(os.fstat(file).st_size))
    ledger.settle(ledger.reserve(0.25, META), 0.125, BASIS)
    ends = [len(line) for line in path.read_bytes().splitlines(keepends=True)]
    assert sizes == [ends[0], sum(ends[:2]), sum(ends)]


@pytest.mark.parametrize("kept", [50, None])
def test_a_mended_last_line_is_forced_to_disk(
    path: Path, kept: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pinned(CAP)
    path.write_text(whole + json.dumps(RESERVE)[:kept])
    sizes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: sizes.append(os.fstat(file).st_size))
    with FileLedger(path, 0.05) as ledger:
        assert ledger.charged_usd == (0.0 if kept else 0.04)
    size = path.stat().st_size
    assert size == (len(whole) if kept else len(pinned(CAP, RESERVE)))
    assert size in sizes


# Amounts


@pytest.mark.parametrize(
    "amount", [math.nan, math.inf, -math.inf, -0.01, -1, 10**400, True, False, "0.1", None, 1j]
)
def test_only_finite_amounts_from_0_on_are_amounts(
    ledger: FileLedger, path: Path, amount: Any
) -> None:
    reservation = ledger.reserve(0.5, META)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="an amount must be"):
        ledger.reserve(amount, META)
    with pytest.raises(LedgerError, match="an amount must be"):
        ledger.settle(reservation, amount, BASIS)
    with pytest.raises(LedgerError, match="an amount must be"):
        FileLedger(path, amount)
    assert path.read_bytes() == before
    assert ledger.charged_usd == 0.5


def test_nothing_can_be_reserved_and_charged_for_nothing(path: Path) -> None:
    with FileLedger(path, 0.0) as ledger:
        ledger.settle(ledger.reserve(0.0, META), 0, BASIS)
        assert ledger.charged_usd == 0
        with pytest.raises(CapReached):
            ledger.reserve(1e-9, META)


# The cap


def test_a_reservation_past_the_cap_is_refused_and_leaves_no_row(
    ledger: FileLedger, path: Path
) -> None:
    ledger.reserve(0.7, META)
    before = path.read_bytes()
    with pytest.raises(CapReached, match=r"0\.31 more would pass the cap of 1\.0 US dollars; 0\.7"):
        ledger.reserve(0.31, META)
    assert path.read_bytes() == before
    ledger.reserve(0.3, META)


def test_the_first_row_is_the_cap_also_when_the_first_reservation_is_refused(path: Path) -> None:
    with FileLedger(path, 0.01) as ledger, pytest.raises(CapReached):
        ledger.reserve(0.02, META)
    assert [row["event"] for row in rows(path)] == ["cap"]


def test_a_thousand_reservations_of_2_cents_meet_20_dollars_exactly(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    with FileLedger(path, 20.0) as ledger:
        for number in range(1000):
            reservation = ledger.reserve(0.02, META)
            if number % 2:
                ledger.settle(reservation, 0.02, BASIS)
        assert ledger.charged_usd == 20.0
        with pytest.raises(CapReached):
            ledger.reserve(1e-11, META)


def test_the_cap_leaves_room_for_the_rounding_of_sums_and_no_more(path: Path) -> None:
    with FileLedger(path, 0.3) as ledger:
        ledger.reserve(0.1 + 0.2, META)
        with pytest.raises(CapReached):
            ledger.reserve(2e-12, META)


def test_a_settlement_gives_back_what_was_not_charged(ledger: FileLedger) -> None:
    ledger.settle(ledger.reserve(1.0, META), 0.25, BASIS)
    assert ledger.charged_usd == 0.25
    ledger.reserve(0.75, META)


def test_a_later_run_lowers_the_cap_for_itself_and_never_raises_it(path: Path) -> None:
    with FileLedger(path, 1.0) as first:
        first.reserve(0.5, META)
        with FileLedger(path, 0.6) as lower, FileLedger(path, 100.0) as higher:
            assert lower.cap_usd == 0.6
            assert higher.cap_usd == 1.0
            with pytest.raises(CapReached):
                lower.reserve(0.2, META)
            higher.reserve(0.5, META)
            with pytest.raises(CapReached):
                higher.reserve(0.1, META)
            assert first.cap_usd == 1.0
    assert [row["event"] for row in rows(path)].count("cap") == 1


def test_only_the_files_first_cap_counts(path: Path) -> None:
    path.write_text(pinned(CAP, CAP | {"cap_usd": 1000.0}, CAP | {"cap_usd": 0.0}))
    with FileLedger(path, 5.0) as ledger:
        assert ledger.cap_usd == 0.1


# Settlements


def test_a_second_settlement_is_refused(ledger: FileLedger, path: Path) -> None:
    reservation = ledger.reserve(0.5, META)
    ledger.settle(reservation, 0.1, BASIS)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="already settled"):
        ledger.settle(reservation, 0.1, BASIS)
    assert path.read_bytes() == before


@pytest.mark.parametrize("settled", [False, True], ids=["open", "settled"])
def test_an_id_is_reserved_once_whether_it_is_settled_or_not(path: Path, settled: bool) -> None:
    written = [CAP, RESERVE, *([SETTLE] if settled else []), RESERVE]
    path.write_text(pinned(*written))
    line, name = len(written), RESERVE["reservation_id"]
    with pytest.raises(
        LedgerError, match=rf":{line}: not a ledger row: reservation {name} occurs twice"
    ):
        FileLedger(path, 1.0)


def test_a_settlement_needs_its_reservation(ledger: FileLedger, path: Path) -> None:
    with pytest.raises(LedgerError, match="reservation nobody is unknown"):
        ledger.settle("nobody", 0.1, BASIS)
    assert path.read_bytes() == b""


def test_an_overcharge_is_written_and_then_raised(ledger: FileLedger, path: Path) -> None:
    reservation = ledger.reserve(0.5, META)
    with pytest.raises(Overcharged, match=r"charged 0\.75, more than the reserved 0\.5"):
        ledger.settle(reservation, 0.75, BASIS)
    assert rows(path)[-1]["charged_usd"] == 0.75
    assert ledger.charged_usd == 0.75
    with pytest.raises(LedgerError, match="already settled"):
        ledger.settle(reservation, 0.1, BASIS)


def test_a_charge_above_its_reservation_by_rounding_is_no_overcharge(ledger: FileLedger) -> None:
    ledger.settle(ledger.reserve(0.3, META), 0.1 + 0.2, BASIS)


def test_another_runs_reservation_can_be_settled(ledger: FileLedger, path: Path) -> None:
    reservation = ledger.reserve(0.5, META)
    with FileLedger(path, 1.0) as other:
        other.settle(reservation, 0.25, BASIS)
    assert ledger.charged_usd == 0.25
    assert ledger.charged_here_usd == 0.25


def test_a_run_knows_its_own_part_of_the_charge(ledger: FileLedger, path: Path) -> None:
    ledger.settle(ledger.reserve(0.25, META), 0.125, BASIS)
    ledger.reserve(0.25, META)
    with FileLedger(path, 1.0) as other:
        other.reserve(0.5, META)
        assert other.charged_here_usd == 0.5
    assert ledger.charged_here_usd == 0.375
    assert ledger.charged_usd == 0.875


def test_an_open_reservation_stays_charged_when_its_run_is_over(path: Path) -> None:
    with FileLedger(path, 1.0) as first:
        first.reserve(0.75, META)
    with FileLedger(path, 1.0) as second:
        assert second.charged_usd == 0.75
        assert second.charged_here_usd == 0


def test_closing_twice_is_harmless(path: Path) -> None:
    ledger = FileLedger(path, 1.0)
    ledger.close()
    ledger.close()


# Files that others wrote


def test_a_ledger_of_the_pinned_harness_is_read_and_continued(path: Path) -> None:
    theirs = pinned(CAP, RESERVE, SETTLE, RESERVE | {"reservation_id": "ab" * 16})
    path.write_text(theirs)
    with FileLedger(path, 15.0) as ledger:
        assert ledger.cap_usd == 0.1
        assert ledger.charged_usd == 0.05
        ledger.settle("ab" * 16, 0.02, BASIS)
        ledger.reserve(0.07, META)
        with pytest.raises(CapReached):
            ledger.reserve(0.01, META)
    assert path.read_text().startswith(theirs)


def test_both_write_rows_that_begin_and_separate_alike(ledger: FileLedger, path: Path) -> None:
    ledger.reserve(0.25, {"task_id": "plain", "adapter": "test"})
    assert path.read_text() == pinned(*rows(path))


@pytest.mark.parametrize("reservation", [5, {"a": 1}, None])
def test_rows_of_a_kind_that_we_do_not_know_are_kept_and_ignored(
    path: Path, reservation: object
) -> None:
    note = {"event": "note", "text": "a person was here", "reservation_id": reservation}
    path.write_text(pinned(CAP, note, RESERVE, note))
    with FileLedger(path, 15.0) as ledger:
        assert ledger.charged_usd == 0.04
    assert rows(path).count(note) == 2


def test_blank_lines_are_no_rows(path: Path) -> None:
    path.write_text(pinned(CAP) + "\n  \n" + pinned(RESERVE))
    with FileLedger(path, 15.0) as ledger:
        assert ledger.charged_usd == 0.04


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"5",
        b"[]",
        b"null",
        b'"event"',
        b"{}",
        b'{"event": "reserve"}',
        b'{"event": "reserve", "reservation_id": [], "reserved_usd": 1}',
        b'{"event": "reserve", "reservation_id": "x", "reserved_usd": -1}',
        b'{"event": "reserve", "reservation_id": "x", "reserved_usd": true}',
        b'{"event": "reserve", "reservation_id": "x", "reserved_usd": "1"}',
        b'{"event": "reserve", "reservation_id": "x", "reserved_usd": NaN}',
        b'{"event": "reserve", "reservation_id": "x", "reserved_usd": 1e999}',
        b'{"event": "reserve", "reservation_id": "x", "reserved_usd": 1' + b"0" * 400 + b"}",
        b'{"event": "settle", "reservation_id": "x", "charged_usd": 1}',
        b'{"event": "cap", "ts": 1}',
        b"\xff\xfe",
        b"\x00" * 64,
        b"[" * 100_000,
    ],
)
def test_a_line_that_is_no_row_is_named_and_nothing_is_touched(path: Path, line: bytes) -> None:
    before = b"\n" + line + b"\n" + pinned(CAP).encode()
    path.write_bytes(before)
    with pytest.raises(LedgerError) as raised:
        FileLedger(path, 15.0)
    assert str(raised.value).startswith(f"{path}:2: not a ledger row")
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"hello", b"\x89PNG", b'{"id": "task-1"', b'{"evil"'])
def test_a_file_of_another_kind_is_refused_and_never_cut_off(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"ledger\.jsonl:1: not a ledger row"):
        FileLedger(path, 15.0)
    assert path.read_bytes() == content


def test_a_reservation_that_occurs_twice_is_refused(path: Path) -> None:
    path.write_text(pinned(CAP, RESERVE, RESERVE))
    with pytest.raises(LedgerError, match=r":3: not a ledger row: reservation 0f\w+ occurs twice"):
        FileLedger(path, 15.0)


def test_a_damaged_line_is_named_the_same_way_every_time(ledger: FileLedger, path: Path) -> None:
    ledger.reserve(0.25, META)
    with path.open("a") as file:
        file.write(pinned(RESERVE) + "damage\n")
    for _ in range(2):
        with pytest.raises(LedgerError, match=r":4: not a ledger row"):
            ledger.reserve(0.25, META)


def test_a_file_that_became_shorter_is_refused(ledger: FileLedger, path: Path) -> None:
    ledger.reserve(0.25, META)
    os.truncate(path, 20)
    with pytest.raises(LedgerError, match="has become shorter"):
        ledger.reserve(0.25, META)
    with pytest.raises(LedgerError, match="has become shorter"):
        _ = ledger.charged_usd


# Only looking


def test_whoever_only_looks_changes_nothing(path: Path) -> None:
    torn = json.dumps(RESERVE | {"reservation_id": "torn"})[:50]
    path.write_text(pinned(CAP, RESERVE) + torn)
    before = path.read_bytes()
    with FileLedger(path, 0.05, read_only=True) as ledger:
        assert (ledger.cap_usd, ledger.charged_usd) == (0.05, 0.04)
        with pytest.raises(LedgerError, match="opened only to look"):
            ledger.reserve(0.01, META)
        with pytest.raises(LedgerError, match="opened only to look"):
            ledger.settle("0f" * 16, 0.01, BASIS)
        with FileLedger(path, 1.0) as other:
            other.settle("0f" * 16, 0.01, BASIS)
        assert ledger.charged_usd == 0.01
    assert path.read_bytes().startswith(before[: -len(torn)])


def test_whoever_only_looks_makes_no_file(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLedger(path, 1.0, read_only=True)
    assert not path.exists()


# How much is read and written


def test_a_reservation_does_not_read_the_file_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    with FileLedger(path, 1e6) as other, FileLedger(path, 1e6) as ledger:
        for _ in range(300):
            other.reserve(0.02, META)
        assert ledger.charged_usd == 6.0
        read: list[int] = []
        pread = os.pread

        def counted(file: int, size: int, position: int) -> bytes:
            data = pread(file, size, position)
            read.append(len(data))
            return data

        monkeypatch.setattr(os, "pread", counted)
        for _ in range(50):
            ledger.settle(ledger.reserve(0.02, META), 0.01, BASIS)
        assert sum(read) == 0
        size = path.stat().st_size
        other.reserve(0.02, META)
        appended = path.stat().st_size - size
        read.clear()
        ledger.reserve(0.02, META)
        assert sum(read) == appended


def test_a_file_system_that_reads_in_small_pieces_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text(pinned(CAP, RESERVE, SETTLE))
    before = path.read_bytes()
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda file, size, at: pread(file, min(size, 7), at))
    with FileLedger(path, 15.0) as ledger:
        assert ledger.charged_usd == 0.01
    assert path.read_bytes() == before


def test_a_row_that_the_disk_took_in_part_is_removed(
    ledger: FileLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.reserve(0.25, META)
    before = path.read_bytes()
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: write(file, data[:10]))
        with pytest.raises(LedgerError, match="only a part of a row"):
            ledger.reserve(0.25, META)
    assert path.read_bytes() == before
    ledger.reserve(0.75, META)


def test_a_full_disk_charges_nothing(
    ledger: FileLedger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.reserve(0.25, META)
    before = path.read_bytes()

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            ledger.reserve(0.25, META)
    assert path.read_bytes() == before
    assert ledger.charged_usd == 0.25
    ledger.reserve(0.75, META)


def test_threads_share_one_ledger(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)
    own = path.with_name("own.jsonl")
    ledger = FileLedger(path, 10.0, own_rows=own)

    def spend(_: int) -> int:
        done = 0
        while True:
            try:
                name = ledger.reserve(0.0625, META)
            except CapReached:
                return done
            ledger.settle(name, 0.0625, BASIS)
            done += 1

    with ledger, ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(spend, range(8))) == 160
        assert ledger.charged_usd == ledger.charged_here_usd == 10.0
    with FileLedger(own, 10.0, read_only=True) as kept:
        assert kept.charged_usd == 10.0


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jevexp.ledger.file.MAX_LINE_BYTES", 1000)
    path.write_text(pinned(CAP) + '{"event": "' + "x" * 5000)
    with pytest.raises(LedgerError, match=r"ledger\.jsonl:2: not a ledger row: too long"):
        FileLedger(path, 1.0)


def test_a_long_file_is_read_in_parts_that_cut_rows(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jevexp.ledger.file._PART_BYTES", 7)
    path.write_text(pinned(CAP, RESERVE, SETTLE, RESERVE | {"reservation_id": "ab" * 16}))
    before = path.read_bytes()
    with FileLedger(path, 15.0) as ledger:
        assert ledger.charged_usd == 0.05
        assert [row["event"] for row in ledger.rows()] == ["cap", "reserve", "settle", "reserve"]
    assert path.read_bytes() == before
