"""What every answer cost, computed again."""

from jevexp.backends.replay.backend import COST_BASIS
from jevexp.core.decision import Decision
from jevexp.core.record import Record
from jevexp.harness.tariff import Tariff
from jevexp.store.directory import RESULTS
from jevexp.verification.check import Check, shown
from jevexp.verification.differences import same
from jevexp.verification.subject import Subject


class Costs:
    """The check that each record's cost and charge follow from usage and tariff."""

    def __init__(self, subject: Subject) -> None:
        self.check = Check("costs", "cost from usage and tariff, charge from cost and reservation")
        pricing, caps = subject.resolved["pricing"], subject.resolved["caps"]
        own = COST_BASIS if subject.kind == "replay" else None
        self._prices = pricing["input_per_m"], pricing["output_per_m"]
        self._basis = own or pricing["basis"]
        # A person's own backend may know another basis, and other amounts to reserve.
        self._own = subject.kind == "python"
        self._reserve_usd = caps["reserve_usd"]

    def look(self, record: Record, line: int, *, adopted: bool) -> None:
        """Price one record again; an adopted one was reserved for under the earlier run's caps."""
        with self.check.guarded(RESULTS, line=line):
            self.check.count += 1
            basis = record.cost_basis if self._own else self._basis
            if self._own and basis == "derived_usage_times_tariff":
                basis = None
            tariff = Tariff(*self._prices, basis)
            decision = Decision(ok=record.ok, model=record.model, usage=record.usage)
            cost_usd, cost_basis = tariff.cost(decision)
            charged = record.reserved_usd if cost_usd is None else cost_usd
            reserved = self._reserve_usd
            if self._own:
                reserved = max(record.reserved_usd, reserved)
            if adopted:
                reserved = record.reserved_usd
                # Of an answer whose process was killed before it was settled, in full.
                charged = reserved if record.charged_usd == reserved else charged
            expected = {
                "cost_usd": cost_usd,
                "cost_basis": cost_basis,
                "charged_usd": charged,
                "reserved_usd": reserved,
            }
            for field, value in expected.items():
                found = getattr(record, field)
                if not same(found, value):
                    message = f"{field}: {shown(found)}, computed {shown(value)}"
                    self.check.fail(RESULTS, message, line=line)
