"""A ledger's rows, as the pinned harness writes them, and what they add up to; no I/O."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from jevexp.ledger.owners import LedgerOwner

Row = dict[str, Any]
# Room for the rounding of sums, as the benchmark has it.
EPSILON_USD = 1e-12


class LedgerError(Exception):
    """The ledger cannot be used as asked; nothing was written unless a subclass says so."""


class LedgerUnavailable(LedgerError):
    """The ledger could not be reached in time; whether the last change was written is unknown."""


class CapReached(LedgerError):
    """The reservation would pass the cap; nothing was written and no request may be sent."""


class Overcharged(LedgerError):
    """A charge above its reservation. It was written; the run has to halt."""


def cap_row(cap_usd: float, ts: float) -> Row:
    """The cap; `ts` is in seconds since the epoch, as in every row."""
    return {"event": "cap", "cap_usd": cap_usd, "ts": ts}


def reserve_row(
    reservation_id: str, reserved_usd: float, ts: float, meta: Mapping[str, Any]
) -> Row:
    """An amount that is set aside."""
    return {
        "event": "reserve",
        "reservation_id": reservation_id,
        "reserved_usd": reserved_usd,
        "ts": ts,
        "meta": dict(meta),
    }


def settle_row(reservation_id: str, charged_usd: float, ts: float, meta: Mapping[str, Any]) -> Row:
    """What a reservation came to."""
    return {
        "event": "settle",
        "reservation_id": reservation_id,
        "charged_usd": charged_usd,
        "ts": ts,
        "meta": dict(meta),
    }


class LedgerState:
    """Reservations and charges, row by row.

    An unsettled reservation counts in full. Sums are exact, so that a thousand small charges meet
    a cap to the cent.
    """

    def __init__(self) -> None:
        self.first_cap_usd: float | None = None
        self.charged = Fraction(0)
        self._open: dict[str, float] = {}
        self._settled: set[str] = set()

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in one row; an event of an unknown kind changes nothing.

        Raises:
            LedgerError: the row contradicts the ones before it, or its amount is none.
            KeyError: a field is missing.
        """
        event = row["event"]
        if not isinstance(event, str):
            raise LedgerError("an event must be text")
        if event in ("reserve", "settle") and not isinstance(row["reservation_id"], str):
            raise LedgerError("a reservation_id must be text")
        if event == "cap" and self.first_cap_usd is None:
            self.first_cap_usd = amount(row["cap_usd"])
        elif event == "reserve":
            self._reserve(row["reservation_id"], amount(row["reserved_usd"]))
        elif event == "settle":
            self._settle(row["reservation_id"], amount(row["charged_usd"]))

    def reserved(self, reservation_id: str) -> float:
        """The amount of an open reservation, in US dollars.

        Raises:
            LedgerError: it is settled already, or there is none.
        """
        if reservation_id not in self._open:
            state = "already settled" if reservation_id in self._settled else "unknown"
            raise LedgerError(f"reservation {reservation_id} is {state}")
        return self._open[reservation_id]

    def _reserve(self, reservation_id: str, reserved_usd: float) -> None:
        if reservation_id in self._open or reservation_id in self._settled:
            raise LedgerError(f"reservation {reservation_id} occurs twice")
        self._open[reservation_id] = reserved_usd
        self.charged += Fraction(reserved_usd)

    def _settle(self, reservation_id: str, charged_usd: float) -> None:
        if reservation_id not in self._open:
            raise LedgerError(f"reservation {reservation_id} is settled but not open")
        self.charged += Fraction(charged_usd) - Fraction(self._open.pop(reservation_id))
        self._settled.add(reservation_id)


def check_fits(charged: Fraction, wanted_usd: float, cap_usd: float) -> None:
    """Refuse a reservation on top of what is charged already, in US dollars.

    Raises:
        CapReached: it would pass the cap.
    """
    if charged + Fraction(wanted_usd) > Fraction(cap_usd) + Fraction(EPSILON_USD):
        raise CapReached(
            f"{wanted_usd} more would pass the cap of {cap_usd} US dollars; "
            f"{float(charged)} are charged"
        )


def check_charge(reserved_usd: float, charged_usd: float) -> None:
    """Find a charge above its reservation.

    Raises:
        Overcharged: it is.
    """
    if charged_usd > reserved_usd + EPSILON_USD:
        raise Overcharged(
            f"charged {charged_usd}, more than the reserved {reserved_usd} US dollars"
        )


def amount(value: float) -> float:
    """A finite, non-negative number of US dollars.

    Raises:
        LedgerError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LedgerError(f"an amount must be a number, found {value!r}")
    try:
        usable = math.isfinite(value) and value >= 0
    except OverflowError as error:
        raise LedgerError("an amount must be finite, found a number beyond all floats") from error
    if not usable:
        raise LedgerError(f"an amount must be finite and not negative, found {value!r}")
    return value


@dataclass(frozen=True, slots=True)
class OpenReservation:
    """A reservation that nobody settled.

    Attributes:
        reservation_id: its id.
        usd: what it sets aside, in US dollars.
        ts: when it was made, in seconds since the epoch; None where the row does not say.
        task_id: the task that it is for, None where the row does not say.
        adapter: the provider's name, None where the row does not say.
        owner: who made it, None where nobody kept that.
    """

    reservation_id: str
    usd: float
    ts: float | None
    task_id: str | None
    adapter: str | None
    owner: LedgerOwner | None


@dataclass(frozen=True, slots=True)
class Statement:
    """A ledger at one moment; amounts are US dollars.

    Attributes:
        cap_usd: its first cap; None before the first reservation.
        charged_usd: settled charges and open reservations together.
        reservations: how many were ever made.
        open: those that nobody settled, oldest first.
    """

    cap_usd: float | None
    charged_usd: float
    reservations: int
    open: tuple[OpenReservation, ...]

    @property
    def open_usd(self) -> float:
        """What the open reservations set aside."""
        return float(sum(reservation.usd for reservation in self.open))
