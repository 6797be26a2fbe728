"""What a hammered ledger has to look like, from its rows and from what its users were told."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.hammer import place_of

ROOT = Path(__file__).parents[2]


def hammer(
    place: str,
    folder: Path,
    *,
    processes: int,
    requests: int,
    kills: int,
    seed: int,
    meanwhile: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Hammer a ledger, do something meanwhile, and check what is left; returns the numbers."""
    options = {"processes": processes, "requests": requests, "kills": kills, "seed": seed}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.hammer", place, str(folder), *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "hammering\n"
            meanwhile()
            out, _ = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == 0
    numbers: dict[str, Any] = json.loads(out)
    assert numbers["failed"] == 0
    return numbers | check(place, folder, requests)


def check(place: str, folder: Path, requests: int) -> dict[str, Any]:
    """Nothing above the cap at any row, and nothing that somebody was told is missing."""
    with place_of(place).open(float(requests), read_only=True) as ledger:
        rows = list(ledger.rows())
        charged = ledger.charged_usd
    outstanding = 0.0
    reserved: set[str] = set()
    settled: set[str] = set()
    assert [row["event"] for row in rows].count("cap") == 1
    for row in rows[1:]:
        if row["event"] == "reserve":
            assert row["reservation_id"] not in reserved
            reserved.add(row["reservation_id"])
            outstanding += row["reserved_usd"]
        else:
            assert row["reservation_id"] in reserved - settled
            settled.add(row["reservation_id"])
            outstanding += row["charged_usd"] - 1.0
        assert outstanding <= requests
    assert len(reserved) == requests == charged
    told = [line.split() for path in folder.glob("*.txt") for line in path.read_text().splitlines()]
    # A process that is killed may have got its reservation and not come to note it.
    told_reserved = {words[1] for words in told if words[0] == "reserved" and len(words) == 2}
    told_settled = {words[1] for words in told if words[0] == "settled" and len(words) == 2}
    assert told_reserved <= reserved
    assert told_settled <= settled
    return {
        "reserved": len(reserved),
        "settled": len(settled),
        "open": len(reserved - settled),
        "told_reserved": len(told_reserved),
        "told_settled": len(told_settled),
    }
