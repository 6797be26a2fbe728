"""A ledger that reads its whole file again for every change: what ours is compared with."""

import fcntl
import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self


class RereadingLedger:
    """The ledger's rules without any memory; only as much of them as a benchmark needs."""

    def __init__(self, path: Path, cap_usd: float) -> None:
        self._path = path
        self.cap_usd = cap_usd
        self.charged_here_usd = 0.0

    @property
    def charged_usd(self) -> float:
        """What the file says now."""
        with self._locked() as (_, rows):
            return _charged(rows)

    def reserve(self, amount_usd: float, meta: Mapping[str, Any]) -> str:
        """Read everything, then add a row."""
        with self._locked() as (file, rows):
            if not rows:
                _append(file, {"event": "cap", "cap_usd": self.cap_usd, "ts": time.time()})
            if _charged(rows) + amount_usd > self.cap_usd + 1e-12:
                raise RuntimeError("the cap is reached")
            name = uuid.uuid4().hex
            row = {"event": "reserve", "reservation_id": name, "reserved_usd": amount_usd}
            _append(file, row | {"ts": time.time(), "meta": dict(meta)})
            return name

    def settle(self, reservation_id: str, charged_usd: float, meta: Mapping[str, Any]) -> None:
        """Read everything, then add a row."""
        with self._locked() as (file, rows):
            if not any(row.get("reservation_id") == reservation_id for row in rows):
                raise RuntimeError("there is no such reservation")
            row = {"event": "settle", "reservation_id": reservation_id, "charged_usd": charged_usd}
            _append(file, row | {"ts": time.time(), "meta": dict(meta)})

    def close(self) -> None:
        """Nothing is kept open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    @contextmanager
    def _locked(self) -> Iterator[tuple[BinaryIO, list[dict[str, Any]]]]:
        with self._path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            yield file, [json.loads(line) for line in file]


def _charged(rows: list[dict[str, Any]]) -> float:
    charges: dict[str, float] = {}
    for row in rows:
        if row["event"] != "cap":
            charges[row["reservation_id"]] = row.get("reserved_usd", row.get("charged_usd"))
    return sum(charges.values())


def _append(file: BinaryIO, row: dict[str, Any]) -> None:
    file.write(json.dumps(row).encode() + b"\n")
    file.flush()
    os.fsync(file.fileno())
