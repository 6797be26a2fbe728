"""Rows that a stranger wrote are refused in one line, also in events that mean nothing here."""

import os
from pathlib import Path

import pytest

from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import LedgerError


@pytest.mark.parametrize(
    "row",
    [
        '{"event": null, "reservation_id": []}',
        '{"event": "reserve", "reservation_id": 1, "reserved_usd": 0.1}',
        '{"event": "reserve", "reservation_id": "a", "reserved_usd": 1e999}',
        '{"event": "reserve", "reservation_id": "a", "reserved_usd": -1}',
        '{"event": "reserve", "event": "settle", "reservation_id": "a"}',
        '[{"event": "reserve"}]',
        '{"event": ' + "[" * 100_000,
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_what_is_no_row_is_named(tmp_path: Path, row: str, read_only: bool) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_text(f'{{"event": "cap", "cap_usd": 1.0, "ts": 1.0}}\n{row}\n')
    with pytest.raises(LedgerError) as caught:
        FileLedger(path, 1.0, read_only=read_only)
    assert str(caught.value).startswith(f"{path}:2: not a ledger row: ")
    assert "\n" not in str(caught.value)


def test_a_line_without_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with path.open("wb") as file:
        file.write(b'{"event": "')
        file.truncate(1 << 40)
    with pytest.raises(LedgerError, match="too long"):
        FileLedger(path, 1.0, read_only=True)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_pipe_is_no_ledger_and_is_not_waited_for(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "ledger.jsonl"
    os.mkfifo(path)
    with pytest.raises(LedgerError, match=r"(is|found) a pipe"):
        FileLedger(path, 1.0, read_only=read_only)
