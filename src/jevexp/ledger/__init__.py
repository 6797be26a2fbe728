"""The spending cap: what every request reserves from before it is sent."""

from jevexp.ledger.books import CapReached, LedgerError, LedgerUnavailable, Overcharged
from jevexp.ledger.file import FileLedger
from jevexp.ledger.own import OwnRows
from jevexp.ledger.place import DatabasePlace, FilePlace, Place, database_place
from jevexp.ledger.protocol import Ledger, ReadableLedger

__all__ = [
    "CapReached",
    "DatabasePlace",
    "FileLedger",
    "FilePlace",
    "Ledger",
    "LedgerError",
    "LedgerUnavailable",
    "Overcharged",
    "OwnRows",
    "Place",
    "ReadableLedger",
    "database_place",
]
