"""The ledger in a database: what differs from the file, and where a database can fail."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from jevexp.errors import InputError
from jevexp.ledger.database import DatabaseLedger
from jevexp.ledger.file import FileLedger
from jevexp.ledger.location import LedgerDatabase
from jevexp.ledger.state import CapReached, LedgerError, LedgerUnavailable, Overcharged
from tests.support.cutting import CuttingProxy

ROOT = Path(__file__).parents[2]
META = {"task_id": "möglich\0☃", "adapter": "test"}
BASIS = {"task_id": "möglich\0☃", "basis": "unknown"}


def opened(url: str, cap_usd: float = 1.0, **options: Any) -> DatabaseLedger:
    return DatabaseLedger(make_url(url), cap_usd, **options)


@pytest.fixture
def ledger(url: str) -> Iterator[DatabaseLedger]:
    with opened(url, now=lambda: 5.0) as made:
        yield made


# Rows


def test_rows_are_those_of_the_file(ledger: DatabaseLedger, tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with FileLedger(path, 1.0, now=lambda: 5.0) as file:
        for one in (ledger, file):
            one.settle(one.reserve(0.1 + 0.2, META), 1 / 7, BASIS)
            one.reserve(0.25, META)
        rows, expected = list(ledger.rows()), list(file.rows())
    names = {row.pop("reservation_id", "") for row in rows}
    assert names.isdisjoint({row.pop("reservation_id", None) for row in expected})
    assert [list(row.items()) for row in rows] == [list(row.items()) for row in expected]


def test_a_runs_own_rows_are_kept_as_well(url: str, tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    with opened(url, 0.5) as other, opened(url, own_rows=own) as ledger:
        other.reserve(0.125, META)
        mine = ledger.reserve(0.25, META)
        ledger.settle(mine, 0.125, BASIS)
        with pytest.raises(CapReached):
            ledger.reserve(0.5, META)
        in_force = [row for row in other.rows() if row.get("reservation_id") == mine]
        assert ledger.charged_here_usd == 0.125
    kept = [json.loads(line) for line in own.read_text().splitlines()]
    assert kept[0]["cap_usd"] == 0.5
    assert kept[1:] == in_force


def test_who_reserved_can_be_told(ledger: DatabaseLedger) -> None:
    name = ledger.reserve(0.25, META)
    (session,) = ledger.owners().values()
    assert name.startswith(session.id)
    assert session.alive is True


# Refusals


def test_refusals_are_those_of_the_file(ledger: DatabaseLedger) -> None:
    name = ledger.reserve(0.5, META)
    with pytest.raises(CapReached, match=r"0\.75 more would pass the cap of 1\.0 US dollars; 0\.5"):
        ledger.reserve(0.75, META)
    with pytest.raises(LedgerError, match="reservation nobody is unknown"):
        ledger.settle("nobody", 0.1, BASIS)
    with pytest.raises(Overcharged, match=r"charged 0\.75, more than the reserved 0\.5"):
        ledger.settle(name, 0.75, BASIS)
    with pytest.raises(LedgerError, match="is already settled"):
        ledger.settle(name, 0.75, BASIS)
    with pytest.raises(LedgerError, match="an amount must be"):
        ledger.reserve(float("nan"), META)
    assert ledger.charged_usd == 0.75
    assert [row["event"] for row in ledger.rows()] == ["cap", "reserve", "settle"]


def test_the_cap_is_there_also_when_the_first_reservation_is_refused(url: str) -> None:
    with opened(url, 0.01) as ledger, pytest.raises(CapReached):
        ledger.reserve(0.02, META)
    with opened(url, 5.0) as later:
        assert [row["event"] for row in later.rows()] == ["cap"]
        assert later.cap_usd == 0.01


def test_whoever_only_looks_makes_nothing(url: str) -> None:
    with opened(url, read_only=True) as ledger:
        assert (ledger.charged_usd, list(ledger.rows()), ledger.owners()) == (0.0, [], {})
        with pytest.raises(LedgerError, match="opened only to look"):
            ledger.reserve(0.1, META)
        with pytest.raises(LedgerError, match="opened only to look"):
            ledger.settle("x", 0.1, META)
    engine = create_engine(url)
    with engine.connect() as connection, pytest.raises(Exception, match="jevexp_ledger"):
        connection.execute(text("SELECT * FROM jevexp_ledger"))
    engine.dispose()


def test_tables_of_another_version_are_refused(ledger: DatabaseLedger, url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE jevexp_ledger SET version = 99"))
    engine.dispose()
    with pytest.raises(LedgerError, match="the tables have version 99, this jevexp knows 1"):
        opened(url)


# Several users


FORKED = """
import os, sys
import psycopg, jevexp.ledger.database
from tests.support.hammer import place_of
started, go = os.pipe()
for number in range(16):
    if os.fork() == 0:
        os.close(go)
        os.read(started, 1)
        with place_of(sys.argv[1]).open(1.0) as ledger:
            ledger.reserve(0.0625, {})
        os._exit(0)
os.close(go)
print(sum(os.waitstatus_to_exitcode(os.wait()[1]) == 0 for number in range(16)))
"""


def test_16_processes_that_start_at_once_make_one_ledger(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED, url], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "16\n", done.stderr
    with opened(url) as ledger:
        assert ledger.charged_usd == 1.0
        assert len(ledger.owners()) == 17
        with pytest.raises(CapReached):
            ledger.reserve(0.01, META)


def test_threads_share_one_ledger(ledger: DatabaseLedger) -> None:
    def spend(_: int) -> int:
        done = 0
        while True:
            try:
                name = ledger.reserve(0.0625, META)
            except CapReached:
                return done
            ledger.settle(name, 0.0625, BASIS)
            done += 1

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(spend, range(4))) == 16
    assert ledger.charged_usd == ledger.charged_here_usd == 1.0


LOCKS = """
import sys, time
from jevexp.ledger.database import DatabaseLedger, _read_totals
from sqlalchemy.engine import make_url
ledger = DatabaseLedger(make_url(sys.argv[1]), 1.0)
with ledger._database.engine.begin() as connection:
    _read_totals(connection, lock=True)
    print("locked", flush=True)
    time.sleep(60)
"""


def test_a_lock_that_is_kept_is_waited_for_and_its_holder_named(url: str) -> None:
    with (
        opened(url, timeout_s=0.0) as impatient,
        subprocess.Popen(
            [sys.executable, "-c", LOCKS, url], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "locked\n"
            with pytest.raises(LedgerUnavailable, match=rf"{process.pid}\b.* has held the lock"):
                impatient.reserve(0.25, META)
            # Longer than one attempt waits: whoever opens the ledger waits on, and the lock dies
            # with its process.
            killer = threading.Timer(2.5, process.kill)
            killer.start()
            opened(url, timeout_s=30.0).close()
            killer.join()
        finally:
            process.kill()
        process.wait()
        impatient._timeout_s, impatient._reached = 20.0, True
        impatient.reserve(0.25, META)
        assert impatient.charged_usd == 0.25


# Lost connections


@pytest.fixture
def way(new_schema: Callable[[], str]) -> Iterator[tuple[CuttingProxy, str]]:
    """A proxy to PostgreSQL, and the ledger's address through it."""
    url = make_url(new_schema())
    assert url.port is not None
    with CuttingProxy(url.port) as proxy:
        yield proxy, url.set(port=proxy.port).render_as_string(hide_password=False)


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_connection_that_is_lost_at_a_commit_charges_once(
    way: tuple[CuttingProxy, str], cut: str
) -> None:
    proxy, url = way
    with opened(url, timeout_s=20.0) as ledger:
        ledger.reserve(0.125, META)
        proxy.cut = cut
        name = ledger.reserve(0.25, META)
        assert ledger.charged_usd == 0.375
        proxy.cut = cut
        ledger.settle(name, 0.125, BASIS)
        assert proxy.cuts == 2
        assert ledger.charged_usd == 0.25
        assert [row["event"] for row in ledger.rows()] == ["cap", "reserve", "reserve", "settle"]
        with pytest.raises(LedgerError, match="is already settled"):
            ledger.settle(name, 0.125, BASIS)


@pytest.mark.parametrize(("cut", "charged"), [("before", 0.125), ("after", 0.375)])
def test_a_reservation_in_doubt_is_never_given_out(
    way: tuple[CuttingProxy, str], tmp_path: Path, cut: str, charged: float
) -> None:
    proxy, url = way
    own = tmp_path / "own.jsonl"
    with opened(url, timeout_s=0.2, own_rows=own) as ledger:
        ledger.reserve(0.125, META)
        proxy.cut, proxy.closed = cut, True
        with pytest.raises(LedgerUnavailable, match="cannot be reached"):
            ledger.reserve(0.25, META)
        assert ledger.charged_here_usd == 0.125
        proxy.closed = False
        # If it was made after all it stays charged, until a person releases it.
        assert ledger.charged_usd == charged
    assert len(own.read_text().splitlines()) == 2


def test_a_settlement_that_cannot_be_written_waits_and_is_written_later(
    way: tuple[CuttingProxy, str], tmp_path: Path
) -> None:
    proxy, url = way
    own = tmp_path / "own.jsonl"
    with opened(url, timeout_s=0.2, own_rows=own) as ledger:
        name = ledger.reserve(0.5, META)
        proxy.cut, proxy.closed = "before", True
        ledger.settle(name, 0.25, BASIS)
        assert ledger.charged_here_usd == 0.25
        with pytest.raises(LedgerUnavailable):
            ledger.reserve(0.25, META)
        proxy.closed = False
        ledger.reserve(0.25, META)
        assert ledger.charged_usd == 0.5
        kept = [json.loads(line) for line in own.read_text().splitlines()]
        assert [row["event"] for row in kept] == ["cap", "reserve", "settle", "reserve"]
        in_force = list(ledger.rows())
        assert in_force[1:] == kept[1:]


def test_an_overcharge_is_raised_also_when_it_has_to_wait(way: tuple[CuttingProxy, str]) -> None:
    proxy, url = way
    with opened(url, timeout_s=0.2) as ledger:
        name = ledger.reserve(0.25, META)
        proxy.cut, proxy.closed = "before", True
        with pytest.raises(Overcharged):
            ledger.settle(name, 0.5, BASIS)
        proxy.closed = False
    with opened(url) as later:
        assert later.charged_usd == 0.5


def test_what_never_arrives_stays_charged_in_full(way: tuple[CuttingProxy, str]) -> None:
    proxy, url = way
    with opened(url, timeout_s=0.2) as ledger:
        name = ledger.reserve(0.5, META)
        proxy.cut, proxy.closed = "before", True
        ledger.settle(name, 0.25, BASIS)
    proxy.closed = False
    with opened(url) as later:
        assert later.charged_usd == 0.5


def test_a_database_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(LedgerUnavailable, match="cannot be reached") as raised:
        opened("postgresql+psycopg://someone:hunter2@127.0.0.1:9/none", timeout_s=60.0)
    assert "hunter2" not in str(raised.value)


# Places


def test_the_password_comes_from_the_environment_and_shows_nowhere(
    new_schema: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = new_schema()
    port = urlsplit(url).port
    monkeypatch.setenv("LEDGER_PASSWORD", "hunter2")
    place = LedgerDatabase(url, "LEDGER_PASSWORD")
    with place.open(1.0) as ledger:
        ledger.reserve(0.25, META)
    nowhere = LedgerDatabase("postgresql://someone@127.0.0.1:9/none", "LEDGER_PASSWORD")
    with pytest.raises(InputError, match=r"^caps\.ledger_url: .*cannot be reached") as raised:
        nowhere.open(1.0)
    assert "hunter2" not in str(raised.value) + str(place) + repr(place)
    missing = LedgerDatabase(f"postgresql://postgres@127.0.0.1:{port}/none", "LEDGER_PASSWORD")
    with pytest.raises(InputError, match=r'^caps\.ledger_url: .*database "none" does not exist'):
        missing.open(1.0)


def test_a_password_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEDGER_PASSWORD", raising=False)
    place = LedgerDatabase("postgresql://someone@127.0.0.1:9/none", "LEDGER_PASSWORD")
    with pytest.raises(InputError, match=r"^caps\.ledger_password_env: LEDGER_PASSWORD is not set"):
        place.check()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_text("hello, this is not a database, and long enough to be looked at\n" * 20)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"^caps\.ledger_url: .*not a database"):
        LedgerDatabase(f"sqlite:///{path}").open(1.0)
    assert path.read_bytes() == before
