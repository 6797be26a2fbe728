"""The spending cap: what every request reserves from before it is sent."""

from jevexp.harness.ledger.books import CapReached, LedgerError, LedgerUnavailable, Overcharged
from jevexp.harness.ledger.file import FileLedger
from jevexp.harness.ledger.own import OwnRows
from jevexp.harness.ledger.place import DatabasePlace, FilePlace, Place, database_place
from jevexp.harness.ledger.protocol import Ledger, ReadableLedger

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
