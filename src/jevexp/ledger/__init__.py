"""The spending cap: what every request reserves from before it is sent."""

from jevexp.ledger.base import Ledger, OpenReservation, Statement
from jevexp.ledger.file import FileLedger
from jevexp.ledger.location import (
    LedgerDatabase,
    LedgerFile,
    LedgerLocation,
    ledger_database,
)
from jevexp.ledger.state import (
    CapReached,
    LedgerError,
    LedgerUnavailable,
    Overcharged,
)

__all__ = [
    "CapReached",
    "FileLedger",
    "Ledger",
    "LedgerDatabase",
    "LedgerError",
    "LedgerFile",
    "LedgerLocation",
    "LedgerUnavailable",
    "OpenReservation",
    "Overcharged",
    "Statement",
    "ledger_database",
]
