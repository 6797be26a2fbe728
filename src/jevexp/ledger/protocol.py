"""What a ledger can do, wherever its rows are kept."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from jevexp.ledger.rows import Row
from jevexp.ledger.sessions import Session


class Ledger(Protocol):
    """A spending cap that any number of runs share; amounts are US dollars.

    One object may be used from several threads at once.
    """

    @property
    def cap_usd(self) -> float:
        """The cap in force: the lower of the ledger's first one and this run's."""

    @property
    def charged_usd(self) -> float:
        """Settled charges plus open reservations of all runs."""

    @property
    def charged_here_usd(self) -> float:
        """What reservations made through this object came to, open ones in full."""

    def reserve(self, amount_usd: float, meta: Mapping[str, Any]) -> str:
        """Set an amount aside, durably, and return the reservation's id.

        Raises:
            CapReached: it would pass the cap.
            LedgerError: it cannot be said to be set aside, so nothing may be sent.
        """

    def settle(self, reservation_id: str, charged_usd: float, meta: Mapping[str, Any]) -> None:
        """Replace a reservation by what was really charged.

        Raises:
            Overcharged: the charge is above the reservation; it was written.
            LedgerError: there is no such open reservation, or the ledger cannot be written.
        """

    def close(self) -> None:
        """Let go of the ledger; open reservations stay charged."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


class ReadableLedger(Ledger, Protocol):
    """A ledger whose rows can be looked at."""

    def rows(self) -> Iterator[Row]:
        """Every row that is there now, in order, in the file's format."""

    def sessions(self) -> dict[str, Session]:
        """The sessions that are known, by their ids."""
