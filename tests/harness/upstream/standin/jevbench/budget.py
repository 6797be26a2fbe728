"""The ledger, reading the whole file for every change."""

import fcntl
import json
import math
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class BudgetExceeded(RuntimeError):
    pass


class Ledger:
    def __init__(self, path: Any, cap_usd: float = 15) -> None:
        self.path = str(path)
        self.cap_usd = _amount(cap_usd)

    @property
    def charged(self) -> float:
        with self._rows() as rows:
            return math.fsum(_open(rows).values())

    def reserve(self, amount_usd: float, meta: dict[str, Any] | None = None) -> str:
        with self._rows() as rows:
            caps = [row["cap_usd"] for row in rows if row["event"] == "cap"]
            cap = min([*caps, self.cap_usd])
            if not caps:
                self._append({"event": "cap", "cap_usd": cap, "ts": time.time()})
            if math.fsum([*_open(rows).values(), _amount(amount_usd)]) > cap + 1e-12:
                raise BudgetExceeded("budget used up; nothing was sent")
            name = uuid.uuid4().hex
            row = {"event": "reserve", "reservation_id": name, "reserved_usd": amount_usd}
            self._append(row | {"ts": time.time(), "meta": meta or {}})
            return name

    def settle(self, name: str, actual_usd: float, meta: dict[str, Any] | None = None) -> None:
        with self._rows() as rows:
            reserved = {
                row["reservation_id"]: row["reserved_usd"]
                for row in rows
                if row["event"] == "reserve"
            }
            row = {"event": "settle", "reservation_id": name, "charged_usd": _amount(actual_usd)}
            self._append(row | {"ts": time.time(), "meta": meta or {}})
        if actual_usd > reserved[name] + 1e-12:
            raise BudgetExceeded("charged more than was reserved")

    @contextmanager
    def _rows(self) -> Iterator[list[dict[str, Any]]]:
        with Path(self.path).open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            yield [json.loads(line) for line in file if line.strip()]

    def _append(self, row: dict[str, Any]) -> None:
        with Path(self.path).open("a") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _open(rows: list[dict[str, Any]]) -> dict[str, float]:
    charges: dict[str, float] = {}
    for row in rows:
        if row["event"] == "reserve":
            charges[row["reservation_id"]] = row["reserved_usd"]
        elif row["event"] == "settle":
            charges[row["reservation_id"]] = row["charged_usd"]
    return charges


def _amount(value: float) -> float:
    if not math.isfinite(value) or value < 0:
        raise BudgetExceeded("an amount has to be finite and not negative")
    return float(value)
