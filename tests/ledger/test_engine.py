"""The tables that every version of the ledger shares, and how they are connected to."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url
from sqlalchemy.schema import CreateTable

from jevexp.ledger.engine import Sqlite, connect, rows, sessions, totals
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
