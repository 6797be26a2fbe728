"""The spending cap: what every request reserves from before it is sent."""

from jevexp.harness.ledger.books import CapReached, LedgerError, Overcharged
from jevexp.harness.ledger.file import FileLedger
from jevexp.harness.ledger.own import OwnRows
from jevexp.harness.ledger.protocol import Ledger

__all__ = [
    "CapReached",
    "FileLedger",
    "Ledger",
    "LedgerError",
    "Overcharged",
    "OwnRows",
]
