"""A ledger's database: its tables, and how SQLite's file or PostgreSQL is connected to.

One database, or PostgreSQL schema, holds one ledger. The rows are only ever added to, as in a file.
Beside them stands their sum, so that a reservation costs the same however many rows there are; it
is kept as an exact fraction, since sums of floats would meet the cap a little earlier or later than
the file does.
"""

import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from jevexp.ledger.state import LedgerError
from jevexp.untrusted.files import MAX_LINE_BYTES
from jevexp.untrusted.locks import holder

_VERSION = 1

metadata = sa.MetaData()

# One row, of number 1: everything that a reservation has to look at.
totals = sa.Table(
    "jevexp_ledger",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("cap_usd", sa.Double),
    sa.Column("charged", sa.Text, nullable=False),
    sa.Column("n_rows", sa.BigInteger, nullable=False),
)

# `usd` is the cap, what is reserved or what is charged, as `event` says; `meta` is JSON.
rows = sa.Table(
    "jevexp_ledger_row",
    metadata,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("event", sa.String(16), nullable=False),
    sa.Column("reservation_id", sa.String(64)),
    sa.Column("usd", sa.Double, nullable=False),
    sa.Column("ts", sa.Double, nullable=False),
    sa.Column("meta", sa.Text),
    sa.UniqueConstraint("reservation_id", "event"),
)

sessions = sa.Table(
    "jevexp_ledger_session",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("fields", sa.Text, nullable=False),
)

# How long one attempt waits for a lock, and for a connection; the ledger tries again until its own
# timeout.
_LOCK_S = 2
_CONNECT_S = 10
# The key of the advisory lock for making the tables: any number, the same in every jevexp.
_MAKING = 5_265_874_051
_NO_TABLE = """
    SELECT name, CASE type WHEN 'table' THEN 'table that is computed' ELSE type END
    FROM sqlite_master WHERE type IN ('view', 'trigger')
    OR sql LIKE 'create virtual%' OR sql LIKE '%generated always%' OR sql LIKE '% as (%' LIMIT 1
"""
_PING = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3}
# One connection a process: changes wait for each other at the database anyway. What a statement was
# given must not get into messages.
_POOL: dict[str, Any] = {"pool_size": 1, "max_overflow": 0, "hide_parameters": True}


def tables_exist(connection: sa.Connection) -> bool:
    """Whether the ledger is there.

    Raises LedgerError: it is, and another version of this program made it.
    """
    if not sa.inspect(connection).has_table(totals.name):
        return False
    version = connection.execute(sa.select(totals.c.version)).scalar()
    if version != _VERSION:
        raise LedgerError(f"the tables have version {version}, this jevexp knows {_VERSION}")
    return True


def create_tables(connection: sa.Connection) -> None:
    """Make the ledger if it is not there; the caller sees to it that nobody else does so now."""
    if not tables_exist(connection):
        metadata.create_all(connection)
        connection.execute(
            sa.insert(totals).values(id=1, version=_VERSION, cap_usd=None, charged="0", n_rows=0)
        )


class Sqlite:
    """SQLite: one writer at a time; BEGIN IMMEDIATE makes every transaction one."""

    def __init__(self, url: sa.URL) -> None:
        self._path = Path(str(url.database))
        self.engine = sa.create_engine(
            url, connect_args={"timeout": _LOCK_S, "check_same_thread": False}, **_POOL
        )
        sa.event.listen(self.engine, "connect", self._connected)
        sa.event.listen(self.engine, "begin", self._begin)

    def _connected(self, connection: Any, _record: object) -> None:
        # Python's own transactions would begin as readers.
        connection.isolation_level = None
        # Somebody else's file may hold anything that SQLite can compute, and without end.
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LINE_BYTES)
        connection.execute("PRAGMA trusted_schema=OFF")
        if computed := connection.execute(_NO_TABLE).fetchone():
            name, kind = computed
            raise LedgerError(f"{self._path}: not a ledger: holds {name}, a {kind}")
        # A commit is on disk when it returns, with one fsync.
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    @staticmethod
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def lock_schema(self, connection: sa.Connection) -> None:
        """The transaction is the only writer already."""

    def holder(self) -> str:
        """The process that has a lock on one of SQLite's files."""
        return holder(*(Path(f"{self._path}{suffix}") for suffix in ("", "-wal", "-shm")))


class Postgres:
    """PostgreSQL: a writer, on any host, locks the row of totals."""

    def __init__(self, url: sa.URL) -> None:
        name = f"jevexp {socket.gethostname()} {os.getpid()}"
        self.engine = sa.create_engine(
            url,
            connect_args={
                "connect_timeout": _CONNECT_S,
                "application_name": name[:63],
                # A machine that is gone is noticed, on either side, within half a minute.
                "tcp_user_timeout": 30_000,
                **_PING,
            },
            **_POOL,
        )
        sa.event.listen(self.engine, "connect", self._connected)

    @staticmethod
    def _connected(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{_LOCK_S}s'")
            cursor.execute("SET statement_timeout = '30s'")
            # A client that stopped in the middle of a change must not keep the others out.
            cursor.execute("SET idle_in_transaction_session_timeout = '30s'")
            for name, seconds in _PING.items():
                cursor.execute(f"SET tcp_{name} = {seconds}")
            cursor.execute("SHOW synchronous_commit")
            if cursor.fetchone()[0] == "off":
                # A reservation that a power cut can undo is none.
                cursor.execute("SET synchronous_commit = on")
        connection.commit()

    def lock_schema(self, connection: sa.Connection) -> None:
        """Take an advisory lock, which the transaction's end gives back."""
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:making)"), {"making": _MAKING})

    def holder(self) -> str:
        """The session that has been longest in a change of the ledger."""
        query = sa.text(
            "SELECT a.application_name, a.client_addr, a.pid FROM pg_stat_activity a "
            "JOIN pg_locks l ON l.pid = a.pid AND l.granted AND l.mode = 'RowShareLock' "
            "WHERE l.relation = to_regclass('jevexp_ledger') AND a.pid <> pg_backend_pid() "
            "ORDER BY a.xact_start LIMIT 1"
        )
        with self.engine.connect() as connection:
            longest = connection.execute(query).first()
        if longest is None:
            return "another process"
        application, address, pid = longest
        return f"{application or 'a client'} from {address or 'here'} (server process {pid})"


def connect(url: sa.URL) -> Sqlite | Postgres:
    """Prepare connections; nothing is connected to yet. The URL holds the password."""
    return Sqlite(url) if url.get_backend_name() == "sqlite" else Postgres(url)
