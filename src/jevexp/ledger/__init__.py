"""The spending cap: what every request reserves from before it is sent."""

from jevexp.ledger.base import Ledger
from jevexp.ledger.file import FileLedger
from jevexp.ledger.location import (
    LedgerDatabase,
    LedgerFile,
    LedgerLocation,
    ledger_database,
)
from jevexp.ledger.run_share import OwnRows
from jevexp.ledger.state import (
    CapReached,
    LedgerError,
    LedgerUnavailable,
    OpenReservation,
    Overcharged,
    Statement,
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
    "OwnRows",
    "Statement",
    "ledger_database",
]
