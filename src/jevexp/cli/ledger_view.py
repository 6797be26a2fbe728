"""A ledger on the terminal and as JSON."""

import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from jevexp.ledger.statement import Open, Statement

_ALIVE = {True: "alive", False: "dead", None: "not known"}
_STYLE = {True: "green", False: "red", None: ""}


def overview(place: str, found: Statement) -> list[str]:
    """The ledger in a few lines."""
    if found.cap_usd is None:
        return [f"ledger {place}", "nothing was reserved yet"]
    left = max(0.0, found.cap_usd - found.charged_usd)
    return [
        f"ledger {place}",
        f"cap ${found.cap_usd:g}, charged ${found.charged_usd:g}, left ${left:g}",
        f"reservations: {found.reservations}, open: {len(found.open)} (${found.open_usd:g})",
    ]


def table(reservations: Iterable[Open]) -> Table:
    """Open reservations with who made them, as far as that is known."""
    made = Table(box=box.SIMPLE_HEAD)
    made.add_column("reservation", no_wrap=True)
    made.add_column("USD", justify="right")
    made.add_column("age", justify="right")
    for heading in ("task", "provider", "process", "run"):
        made.add_column(heading, overflow="fold")
    now = time.time()
    for one in reservations:
        session = one.session
        alive = session.alive if session else None
        process = f"{session.pid} on {session.host}: {_ALIVE[alive]}" if session else "not known"
        made.add_row(
            one.reservation_id,
            f"{one.usd:g}",
            _age(one, now),
            Text(one.task_id or ""),
            Text(one.adapter or ""),
            Text(process, style=_STYLE[alive]),
            Text((session.run if session else None) or ""),
        )
    return made


def _age(one: Open, now: float) -> str:
    if one.ts is None or not 0 < one.ts < now:
        # By a clock that is ahead of ours, or by none.
        return ""
    return str(timedelta(seconds=int(now - one.ts)))


def as_json(found: Statement) -> dict[str, Any]:
    """Everything that is known, as plain JSON; `age_s` is in seconds."""
    now = time.time()
    return {
        "cap_usd": found.cap_usd,
        "charged_usd": found.charged_usd,
        "open_usd": found.open_usd,
        "reservations": found.reservations,
        "open": [_one(one, now) for one in found.open],
    }


def _one(one: Open, now: float) -> dict[str, Any]:
    fields = asdict(one)
    session = fields.pop("session")
    known = {name: session[name] for name in ("run", "host", "pid")} if session else {}
    alive = one.session.alive if one.session else None
    nobody = {"run": None, "host": None, "pid": None}
    age_s = None if one.ts is None else now - one.ts
    return fields | {"age_s": age_s} | nobody | known | {"alive": alive}
