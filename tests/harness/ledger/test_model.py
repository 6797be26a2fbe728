"""Any sequence of events against a model of the ledger that fits on a page."""

import json
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from jevexp.harness import CapReached, FileLedger, LedgerError, Overcharged

EPSILON = Fraction(1e-12)
AMOUNTS = st.one_of(
    st.sampled_from([0.0, 0.02, 0.1, 0.3, 1.0]), st.floats(0, 2, allow_subnormal=False)
)


class LedgerMachine(RuleBasedStateMachine):
    """Runs come and go, reserve, settle and die in the middle of a row."""

    runs = Bundle("runs")
    reservations = Bundle("reservations")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger.jsonl"
        self.file_cap: float | None = None
        self.caps: dict[FileLedger, float] = {}
        self.reserved: dict[str, Fraction] = {}
        self.settled: dict[str, Fraction] = {}

    def charged(self) -> Fraction:
        return sum([*self.reserved.values(), *self.settled.values()], Fraction(0))

    def cap_of(self, run: FileLedger) -> float:
        own = self.caps[run]
        return own if self.file_cap is None else min(own, self.file_cap)

    @rule(target=runs, cap=AMOUNTS)
    def start(self, cap: float) -> FileLedger:
        run = FileLedger(self.path, cap)
        self.caps[run] = cap
        return run

    @rule(target=reservations, run=runs, amount=AMOUNTS)
    def reserve(self, run: FileLedger, amount: float) -> object:
        if self.file_cap is None:
            self.file_cap = self.caps[run]
        fits = self.charged() + Fraction(amount) <= Fraction(self.cap_of(run)) + EPSILON
        if not fits:
            with pytest.raises(CapReached):
                run.reserve(amount, {})
            return multiple()
        reservation = run.reserve(amount, {})
        self.reserved[reservation] = Fraction(amount)
        return reservation

    @rule(run=runs, reservation=reservations, amount=AMOUNTS)
    def settle(self, run: FileLedger, reservation: str, amount: float) -> None:
        if reservation in self.settled:
            with pytest.raises(LedgerError, match="already settled"):
                run.settle(reservation, amount, {})
            return
        reserved = self.reserved.pop(reservation)
        self.settled[reservation] = Fraction(amount)
        if amount > float(reserved) + 1e-12:
            with pytest.raises(Overcharged):
                run.settle(reservation, amount, {})
        else:
            run.settle(reservation, amount, {})

    @rule(run=runs)
    def settle_what_nobody_reserved(self, run: FileLedger) -> None:
        with pytest.raises(LedgerError, match="unknown"):
            run.settle("nobody", 0.0, {})

    @rule(run=runs, length=st.integers(1, 60))
    def die_in_the_middle_of_a_row(self, run: FileLedger, length: int) -> None:
        # Whoever writes has read before, and mended what was torn.
        _ = run.charged_usd
        row = json.dumps({"event": "reserve", "reservation_id": "torn", "reserved_usd": 0.5})
        with self.path.open("a") as file:
            file.write(row[:length])

    @rule(run=runs)
    def write_a_row_of_another_kind(self, run: FileLedger) -> None:
        _ = run.charged_usd
        with self.path.open("a") as file:
            file.write('{"event": "note"}\n')

    @invariant()
    def everybody_sees_the_same_charge(self) -> None:
        for run in self.caps:
            assert run.charged_usd == float(self.charged())
            assert run.cap_usd == self.cap_of(run)

    def teardown(self) -> None:
        for run in self.caps:
            run.close()
        with self.folder, FileLedger(self.path, 1.0) as fresh:
            assert fresh.charged_usd == float(self.charged())


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
