"""The tables that every version of the ledger shares, and how they are connected to."""

import sqlite3
from pathlib import Path
from typing import Any, Self

import pytest
from sqlalchemy import event, select
from sqlalchemy.engine import make_url
from sqlalchemy.schema import CreateTable

from jevexp.ledger.engine import (
    Postgres,
    Sqlite,
    connect,
    create_tables,
    rows,
    sessions,
    totals,
)
from jevexp.untrusted.files import MAX_LINE_BYTES

TABLES = """
CREATE TABLE jevexp_ledger ( id INTEGER NOT NULL, version INTEGER NOT NULL, cap_usd DOUBLE,
charged TEXT NOT NULL, n_rows BIGINT NOT NULL, PRIMARY KEY (id) )
CREATE TABLE jevexp_ledger_row ( seq BIGINT NOT NULL, event VARCHAR(16) NOT NULL,
reservation_id VARCHAR(64), usd DOUBLE NOT NULL, ts DOUBLE NOT NULL, meta TEXT,
PRIMARY KEY (seq), UNIQUE (reservation_id, event) )
CREATE TABLE jevexp_ledger_session ( id VARCHAR(16) NOT NULL, fields TEXT NOT NULL,
PRIMARY KEY (id) )
"""


@pytest.mark.parametrize(
    ("dialect", "double"),
    [("sqlite", "DOUBLE"), ("postgresql+psycopg", "DOUBLE PRECISION")],
)
def test_the_tables_are_those_of_every_version(dialect: str, double: str) -> None:
    made = "".join(
        str(CreateTable(table).compile(dialect=make_url(f"{dialect}://").get_dialect()()))
        for table in (totals, rows, sessions)
    )
    assert made.split() == TABLES.replace("DOUBLE", double).split()


@pytest.mark.parametrize("address", ["sqlite:///{}/l.db", "postgresql+psycopg://u@h/d"])
def test_a_process_has_one_connection_and_messages_hide_values(
    address: str, tmp_path: Path
) -> None:
    engine = connect(make_url(address.format(tmp_path))).engine
    pool = engine.pool
    assert (pool.size(), pool._max_overflow, engine.hide_parameters) == (1, 0, True)  # type: ignore[attr-defined]


def test_a_strangers_file_is_opened_within_limits(tmp_path: Path) -> None:
    engine = Sqlite(make_url(f"sqlite:///{tmp_path / 'l.db'}")).engine
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
        raw: Any = connection.connection.dbapi_connection
        assert raw.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == MAX_LINE_BYTES
        # Python begins no transaction of its own; ours is a writer's from the start.
        assert raw.isolation_level is None
        assert raw.in_transaction
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            sqlite3.connect(tmp_path / "l.db", timeout=0).execute("BEGIN IMMEDIATE")

        def pragma(name: str) -> object:
            return raw.execute(f"PRAGMA {name}").fetchone()[0]

        # FULL: a commit waits for the disk.
        assert (pragma("synchronous"), pragma("journal_mode")) == (2, "wal")
        assert (pragma("trusted_schema"), pragma("busy_timeout")) == (0, 2000)
    engine.dispose()


def test_a_new_ledger_has_one_row_of_nothing(tmp_path: Path) -> None:
    engine = Sqlite(make_url(f"sqlite:///{tmp_path / 'l.db'}")).engine
    for _ in range(2):
        with engine.begin() as connection:
            create_tables(connection)
            assert connection.execute(select(totals)).all() == [(1, 1, None, "0", 0)]
    engine.dispose()


def test_a_server_that_is_gone_is_noticed_within_half_a_minute() -> None:
    engine = connect(make_url("postgresql+psycopg://u@h/d")).engine
    asked: dict[str, Any] = {}

    @event.listens_for(engine, "do_connect")
    def note(_dialect: object, _record: object, _place: object, options: Any) -> None:
        asked.update(options)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        engine.connect()
    del asked["context"]
    assert asked.pop("application_name").startswith("jevexp ")
    limits = {"connect_timeout": 10, "tcp_user_timeout": 30_000}
    alive = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3}
    assert asked == {"host": "h", "dbname": "d", "user": "u", **limits, **alive}


@pytest.mark.parametrize("durable", ["on", "off", "local"])
def test_what_a_session_is_told_is_committed(durable: str) -> None:
    told: list[str] = []

    class Session:
        """A connection and its cursor, as far as they are used."""

        def cursor(self) -> Self:
            return self

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            told.append("closed")

        def execute(self, statement: str) -> None:
            told.append(statement)

        def fetchone(self) -> tuple[str]:
            return (durable,)

        def commit(self) -> None:
            told.append("committed")

    Postgres._connected(Session(), None)
    assert told == [
        "SET lock_timeout = '2s'",
        "SET statement_timeout = '30s'",
        "SET idle_in_transaction_session_timeout = '30s'",
        "SET tcp_keepalives_idle = 5",
        "SET tcp_keepalives_interval = 5",
        "SET tcp_keepalives_count = 3",
        "SHOW synchronous_commit",
        *(["SET synchronous_commit = on"] if durable == "off" else []),
        "closed",
        "committed",
    ]
