"""Answers in the order in which they come, records in the order of the dataset."""

from collections.abc import Callable, Sequence
from typing import Protocol

from jevexp.core.record import Record
from jevexp.harness.attempt import Evidence
from jevexp.harness.concurrent.crew import Arrival
from jevexp.harness.stops import StopReason, StopRules


class OrderedEvidence(Evidence, Protocol):
    """Evidence that can also wait for its turn; every call is durable when it returns."""

    def append_all(self, records: Sequence[Record]) -> None:
        """Append records to the results."""

    def append_early(self, records: Sequence[Record]) -> None:
        """Keep records that wait for the ones before them; each is appended later as well."""

    def drop_early(self) -> None:
        """Forget the early records, which are all in the results by now."""


class InOrder:
    """Appends each record once every one before it is there.

    Args:
        evidence: where records go.
        rules: what they say about going on.
        on_record: called for each record once it is in the results.
    """

    def __init__(
        self,
        evidence: OrderedEvidence,
        rules: StopRules,
        on_record: Callable[[Record], None] | None,
    ) -> None:
        self._evidence = evidence
        self._rules = rules
        self._on_record = on_record
        self._waiting: dict[int, Arrival] = {}
        self._damaged = False
        self.placed = 0
        self.attempted = 0
        self.stop: StopReason | None = None

    def keep(self, arrivals: Sequence[Arrival]) -> None:
        """Hold on to further records until `finish`."""
        self._waiting |= {arrival.place: arrival for arrival in arrivals}

    def take(self, arrivals: Sequence[Arrival]) -> None:
        """Append the records whose turn it is, and keep the others."""
        self.keep(arrivals)
        due = []
        while (arrival := self._waiting.pop(self.placed, None)) is not None:
            due.append(arrival)
            self.placed += 1
        self._append(due)
        early = [
            arrival.record
            for arrival in arrivals
            if arrival.record is not None and arrival.place >= self.placed
        ]
        if early:
            self._evidence.append_early(early)

    def finish(self) -> None:
        """Append what still waits, past the places that were never answered."""
        if self._damaged:
            # Half of a line may be there; what waits is in the file of early records.
            return
        self._append([self._waiting[place] for place in sorted(self._waiting)])
        self._waiting.clear()
        self._evidence.drop_early()

    def _append(self, due: Sequence[Arrival]) -> None:
        records = [arrival.record for arrival in due if arrival.record is not None]
        if records:
            self._damaged = True
            self._evidence.append_all(records)
            self._damaged = False
        for arrival in due:
            self._note(arrival.record)

    def _note(self, record: Record | None) -> None:
        """Count a record that is in the results; the first rule that it meets stays the reason."""
        if record is None:
            self.stop = self.stop or StopReason.OVERCHARGED
            return
        self.attempted += 1
        if self._on_record:
            self._on_record(record)
        stop = self._rules.after(record)
        self.stop = self.stop or stop
