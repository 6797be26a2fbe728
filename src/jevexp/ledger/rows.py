"""A ledger's rows, as the pinned harness writes them, and how one is appended to a file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jevexp.core.json import dumps
from jevexp.ledger.books import LedgerError

Row = dict[str, Any]


def cap_row(cap_usd: float, ts: float) -> Row:
    """The cap; `ts` is in seconds since the epoch, as in every row."""
    return {"event": "cap", "cap_usd": cap_usd, "ts": ts}


def reserve_row(
    reservation_id: str, reserved_usd: float, ts: float, meta: Mapping[str, Any]
) -> Row:
    """An amount that is set aside."""
    return {
        "event": "reserve",
        "reservation_id": reservation_id,
        "reserved_usd": reserved_usd,
        "ts": ts,
        "meta": dict(meta),
    }


def settle_row(reservation_id: str, charged_usd: float, ts: float, meta: Mapping[str, Any]) -> Row:
    """What a reservation came to."""
    return {
        "event": "settle",
        "reservation_id": reservation_id,
        "charged_usd": charged_usd,
        "ts": ts,
        "meta": dict(meta),
    }


def append(file: int, row: Row, path: Path) -> int:
    """Append a row to an open file and force it to disk; nobody else may write meanwhile.

    Returns:
        The row's length in bytes.

    Raises:
        LedgerError: the disk took only a part of it, which was removed again.
    """
    line = dumps(row).encode() + b"\n"
    size = os.fstat(file).st_size
    written = os.write(file, line)
    if written != len(line):
        os.ftruncate(file, size)
        raise LedgerError(f"{path}: the disk took only a part of a row; it was removed")
    os.fsync(file)
    return written
