"""Any sequence of events against a model of the ledger that fits on a page."""

import json
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy.engine import make_url

from jevexp.ledger.base import Ledger
from jevexp.ledger.database import DatabaseLedger
from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import CapReached, LedgerError, Overcharged

EPSILON = Fraction(1e-12)
AMOUNTS = st.one_of(
    st.sampled_from([0.0, 0.02, 0.1, 0.3, 1.0]), st.floats(0, 2, allow_subnormal=False)
)


class LedgerMachine(RuleBasedStateMachine):
    """Runs come and go, reserve and settle, whatever keeps the rows."""

    runs = Bundle("runs")
    reservations = Bundle("reservations")

    def __init__(self) -> None:
        super().__init__()
        self.file_cap: float | None = None
        self.caps: dict[Ledger, float] = {}
        self.reserved: dict[str, Fraction] = {}
        self.settled: dict[str, Fraction] = {}

    @abstractmethod
    def open(self, cap: float) -> Ledger:
        """Open the ledger for one more run."""

    def charged(self) -> Fraction:
        return sum([*self.reserved.values(), *self.settled.values()], Fraction(0))

    def cap_of(self, run: Ledger) -> float:
        own = self.caps[run]
        return own if self.file_cap is None else min(own, self.file_cap)

    @rule(target=runs, cap=AMOUNTS)
    def start(self, cap: float) -> Ledger:
        run = self.open(cap)
        self.caps[run] = cap
        return run

    @rule(target=reservations, run=runs, amount=AMOUNTS)
    def reserve(self, run: Ledger, amount: float) -> object:
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
    def settle(self, run: Ledger, reservation: str, amount: float) -> None:
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
    def settle_what_nobody_reserved(self, run: Ledger) -> None:
        with pytest.raises(LedgerError, match="unknown"):
            run.settle("nobody", 0.0, {})

    @invariant()
    def everybody_sees_the_same_charge(self) -> None:
        for run in self.caps:
            assert run.charged_usd == float(self.charged())
            assert run.cap_usd == self.cap_of(run)

    def teardown(self) -> None:
        for run in self.caps:
            run.close()
        with self.open(1.0) as fresh:
            assert fresh.charged_usd == float(self.charged())


class FileMachine(LedgerMachine):
    """In a file, where processes die in the middle of a row."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "ledger.jsonl"

    def open(self, cap: float) -> Ledger:
        return FileLedger(self.path, cap)

    @rule(run=LedgerMachine.runs, length=st.integers(1, 60))
    def die_in_the_middle_of_a_row(self, run: Ledger, length: int) -> None:
        # Whoever writes has read before, and mended what was torn.
        _ = run.charged_usd
        row = json.dumps({"event": "reserve", "reservation_id": "torn", "reserved_usd": 0.5})
        with self.path.open("a") as file:
            file.write(row[:length])

    @rule(run=LedgerMachine.runs)
    def write_a_row_of_another_kind(self, run: Ledger) -> None:
        _ = run.charged_usd
        with self.path.open("a") as file:
            file.write('{"event": "note"}\n')

    def teardown(self) -> None:
        with self.folder:
            super().teardown()


def run(machine: type[LedgerMachine], examples: int) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=25, deadline=None)
    )


def test_a_file_follows_the_model() -> None:
    run(FileMachine, 60)


@pytest.mark.parametrize(("kind", "examples"), [("sqlite", 10), ("postgres", 6)])
def test_a_database_follows_the_model(
    kind: str, examples: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    numbers = iter(range(1_000_000))

    def sqlite() -> str:
        return f"sqlite:///{tmp_path / str(next(numbers))}"

    new: Callable[[], str] = sqlite
    if kind == "postgres":
        new = request.getfixturevalue("new_schema")

    class DatabaseMachine(LedgerMachine):
        """In a database."""

        def __init__(self) -> None:
            super().__init__()
            self.url = make_url(new())

        def open(self, cap: float) -> Ledger:
            return DatabaseLedger(self.url, cap)

    run(DatabaseMachine, examples)
