"""A change of the database is tried again until it is known to be there, and no longer."""

import inspect
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

from jevexp.ledger import database
from jevexp.ledger.database import DatabaseLedger
from jevexp.ledger.state import LedgerError, LedgerUnavailable


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[DatabaseLedger]:
    url = make_url(f"sqlite:///{tmp_path / 'l.db'}")
    with DatabaseLedger(url, 1.0, timeout_s=4.0, now=lambda: 5.0) as made:
        yield made


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that are made, in seconds of a clock that only they move."""
    made: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: sum(made))
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def test_a_database_is_waited_for_a_minute_unless_somebody_says_otherwise() -> None:
    assert inspect.signature(DatabaseLedger).parameters["timeout_s"].default == 60.0


def fail(ledger: DatabaseLedger, patch: pytest.MonkeyPatch, reason: str) -> Callable[[], None]:
    """Let every change fail until what is returned is called."""
    engine = ledger._database.engine

    def refuse() -> Any:
        raise OperationalError("INSERT", {}, Exception(reason))

    begin = engine.begin
    patch.setattr(engine, "begin", refuse)
    patch.setattr(ledger._database, "holder", lambda: "somebody")
    return lambda: patch.setattr(engine, "begin", begin)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("database is locked", "somebody has held the lock for 4 s"),
        ("gone\nfor good", "cannot be reached: gone"),
        ("", "cannot be reached: OperationalError"),
    ],
)
def test_pauses_double_up_to_a_second_until_the_time_is_over(
    ledger: DatabaseLedger,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
    told: str,
) -> None:
    again = fail(ledger, monkeypatch, reason)
    with pytest.raises(LedgerUnavailable) as raised:
        ledger.reserve(0.25, {})
    assert str(raised.value).endswith(f"l.db: {told}")
    doubled = [0.02 * 2**number for number in range(6)]
    assert pauses == pytest.approx([*doubled, 1.0, 1.0, 1.0])
    # After one timeout a change is only tried, until one comes through.
    with pytest.raises(LedgerUnavailable):
        ledger.reserve(0.25, {})
    assert len(pauses) == 9
    again()
    ledger.reserve(0.25, {})
    fail(ledger, monkeypatch, reason)
    with pytest.raises(LedgerUnavailable):
        ledger.reserve(0.25, {})
    assert len(pauses) == 18


def test_a_change_whose_answer_was_lost_is_not_made_twice(
    ledger: DatabaseLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = ledger._change

    def lost(work: Callable[..., Any], **options: Any) -> Any:
        # Committed, and nobody heard of it: the same work is done again.
        change(work, **options)
        return change(work, **options)

    monkeypatch.setattr(ledger, "_change", lost)
    name = ledger.reserve(0.25, {})
    assert ledger.charged_usd == 0.25
    ledger.settle(name, 0.125, {})
    assert ledger.charged_usd == 0.125
    assert [row["event"] for row in ledger.rows()] == ["cap", "reserve", "settle"]
    # What is settled by another call is another's.
    with pytest.raises(LedgerError, match="is already settled"):
        ledger.settle(name, 0.125, {})


def test_whoever_changes_the_sums_locks_them_and_whoever_looks_does_not(
    ledger: DatabaseLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, locked = database._read_totals, list[bool]()

    def noted(connection: Connection, *, lock: bool = False) -> Any:
        locked.append(lock)
        return read(connection, lock=lock)

    monkeypatch.setattr(database, "_read_totals", noted)
    ledger.settle(ledger.reserve(0.25, {}), 0.125, {})
    assert locked == [True, True]
    assert ledger.charged_usd == 0.125
    assert locked[2:] == [False]
