"""The tables of a ledger in a database; one database, or PostgreSQL schema, holds one ledger.

The rows are only ever added to, as in a file. Beside them stands what they come to, so that a
reservation costs the same however many rows there are; it is kept as an exact fraction, since sums
of floats would meet the cap a little earlier or later than the file does.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    insert,
    inspect,
    select,
)

from jevexp.ledger.books import LedgerError

VERSION = 1

metadata = MetaData()

# One row, of number 1: everything that a reservation has to look at.
totals = Table(
    "jevexp_ledger",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("cap_usd", Double),
    Column("charged", Text, nullable=False),
    Column("n_rows", BigInteger, nullable=False),
)

# `usd` is the cap, what is reserved or what is charged, as `event` says; `meta` is JSON.
rows = Table(
    "jevexp_ledger_row",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("event", String(16), nullable=False),
    Column("reservation_id", String(64)),
    Column("usd", Double, nullable=False),
    Column("ts", Double, nullable=False),
    Column("meta", Text),
    UniqueConstraint("reservation_id", "event"),
)

sessions = Table(
    "jevexp_ledger_session",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("fields", Text, nullable=False),
)


def exists(connection: Connection) -> bool:
    """Whether the ledger is there.

    Raises:
        LedgerError: it is, and another version of this program made it.
    """
    if not inspect(connection).has_table(totals.name):
        return False
    version = connection.execute(select(totals.c.version)).scalar()
    if version != VERSION:
        raise LedgerError(f"the tables have version {version}, this jevexp knows {VERSION}")
    return True


def create(connection: Connection) -> None:
    """Make the ledger if it is not there; the caller sees to it that nobody else does so now."""
    if not exists(connection):
        metadata.create_all(connection)
        connection.execute(
            insert(totals).values(id=1, version=VERSION, cap_usd=None, charged="0", n_rows=0)
        )
