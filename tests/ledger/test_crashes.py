"""Last lines that dying processes leave in a ledger, and what is made of them."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import CapReached, LedgerError

CAP = {"event": "cap", "cap_usd": 1.0, "ts": 1.0}
RESERVE = {
    "event": "reserve",
    "reservation_id": "first",
    "reserved_usd": 0.25,
    "ts": 2.0,
    "meta": {"task_id": "größe", "adapter": "x"},
}
SETTLE = {
    "event": "settle",
    "reservation_id": "first",
    "charged_usd": 0.125,
    "ts": 3.0,
    "meta": {"task_id": "größe", "basis": "unknown"},
}
META = {"task_id": "t", "adapter": "x"}


def line(row: dict[str, Any], *, ascii_only: bool = True) -> bytes:
    return json.dumps(row, ensure_ascii=ascii_only).encode() + b"\n"


ROWS = [line(CAP), line(RESERVE), line(SETTLE), line(RESERVE, ascii_only=False)]


@given(st.data())
def test_any_part_of_a_row_is_dropped_and_the_ledger_goes_on(data: st.DataObject) -> None:
    rows = [CAP, RESERVE, SETTLE]
    complete = data.draw(st.integers(0, 2))
    whole = line(rows[complete], ascii_only=data.draw(st.booleans()))
    torn = whole[: data.draw(st.integers(1, len(whole) - 2))]
    before = b"".join(map(line, rows[:complete]))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        path.write_bytes(before + torn)
        with FileLedger(path, 1.0) as ledger:
            assert path.read_bytes() == before
            assert ledger.charged_usd == (0.25 if complete == 2 else 0.0)
            ledger.reserve(0.5, META)
        with FileLedger(path, 1.0) as again:
            assert again.charged_usd == (0.75 if complete == 2 else 0.5)


@pytest.mark.parametrize(
    ("rows", "charged"), [([CAP], 0.0), ([CAP, RESERVE], 0.25), ([CAP, RESERVE, SETTLE], 0.125)]
)
def test_a_row_that_lacks_only_its_newline_counts(
    tmp_path: Path, rows: list[dict[str, Any]], charged: float
) -> None:
    path = tmp_path / "ledger.jsonl"
    whole = b"".join(map(line, rows))
    path.write_bytes(whole[:-1])
    with FileLedger(path, 1.0) as ledger:
        assert ledger.charged_usd == charged
        assert path.read_bytes() == whole
        ledger.reserve(0.5, META)
    assert len(path.read_bytes().splitlines()) == len(rows) + 1


def test_a_line_torn_while_we_look_is_dropped_too(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with FileLedger(path, 1.0) as ledger:
        ledger.reserve(0.25, META)
        before = path.read_bytes()
        with path.open("ab") as file:
            file.write(line(RESERVE)[:40])
        assert ledger.charged_usd == 0.25
        assert path.read_bytes() == before
        ledger.reserve(0.75, META)
        with pytest.raises(CapReached):
            ledger.reserve(0.01, META)


def test_a_whole_last_row_that_makes_no_sense_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    content = line(CAP) + line(SETTLE)[:-1]
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r":2: not a ledger row: .* settled but not open"):
        FileLedger(path, 1.0)
    assert path.read_bytes().rstrip(b"\n") == content
