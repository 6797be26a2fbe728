"""Why a run ended where it did, told again from what it left behind."""

from contextlib import suppress

from jevexp.core.record import Record
from jevexp.harness.stops import ExpectedModel, StopReason, StopRules
from jevexp.ledger.state import CapReached, check_fits
from jevexp.store import RunDirectory, RunStatus
from jevexp.store.directory import MANIFEST, RESULTS
from jevexp.verification.check import Check
from jevexp.verification.context import VerificationContext
from jevexp.verification.ledger import Rows

# Only the ledger knows of these: no record follows.
_OF_THE_LEDGER = frozenset(
    {StopReason.CAP_REACHED, StopReason.OVERCHARGED, StopReason.LEDGER_UNAVAILABLE}
)
# How far the newest request may be ahead of the slowest answer, for each that is under way.
_PLACES_EACH = 64


class Stops:
    """The check that the tasks ended where a rule ended them, and nowhere else."""

    def __init__(self, context: VerificationContext) -> None:
        self.check = Check("stop", "the stop reason is the one that the records lead to")
        self._context = context
        strict = context.resolved["identity"] == "strict"
        model = context.manifest.backend.description.get("model")
        if model is None and context.adopted:
            model = _adopted_model(context)
        self._rules = StopRules(ExpectedModel(model) if strict else None)
        self._after = 0
        self._reason: StopReason | None = None

    def look(self, record: Record, line: int) -> None:
        """Take in the next record that this run made itself."""
        self.check.count += 1
        if self._reason is not None:
            self._after += 1
            # Requests that were under way when the rule applied come to their records.
            at_once = self._context.manifest.concurrency
            if at_once == 1 or self._after > at_once * _PLACES_EACH:
                self.check.fail(RESULTS, f"a record after {self._reason}", line=line)
            return
        self._reason = self._rules.after(record)

    def finish(self, rows: Rows | None) -> Check:
        """Hold the manifest against the rule that applied; `rows` are the ledger's."""
        manifest = self._context.manifest
        said, counts = manifest.stop_reason, manifest.counts
        self.check.count += 1
        if manifest.status is not RunStatus.INCOMPLETE:
            # Whatever ended it otherwise may have come before the rule was noticed.
            if said is not None:
                self.check.fail(MANIFEST, f"stop_reason: a run that is {manifest.status} has none")
            return self.check
        if said in _OF_THE_LEDGER:
            self._check_ledger(said, rows)
        elif said != self._reason:
            found = self._reason or "no rule"
            self.check.fail(MANIFEST, f"stop_reason: {said}; the records lead to {found}")
        if said is None and counts.attempted < counts.requested:
            self.check.fail(MANIFEST, "counts.attempted: no stop reason says why tasks are missing")
        return self.check

    def _check_ledger(self, said: str, rows: Rows | None) -> None:
        manifest = self._context.manifest
        if self._reason is not None:
            self.check.fail(MANIFEST, f"stop_reason: {said}; the records lead to {self._reason}")
        if manifest.counts.attempted >= manifest.counts.requested:
            self.check.fail(MANIFEST, f"stop_reason: {said}; no task is missing")
        if rows is None:
            return
        if said == StopReason.OVERCHARGED and not rows.overcharged:
            self.check.fail(MANIFEST, f"stop_reason: {said}; no charge is above its reservation")
        # Of a shared ledger the others' charges are not here, a person's own backend may reserve
        # more than is configured, and what several requests at once gave back came later.
        alone = not manifest.ledger.shared and manifest.concurrency == 1
        alone = alone and not self._context.foreign_amounts
        if said == StopReason.CAP_REACHED and alone:
            next_usd = self._context.resolved["caps"]["reserve_usd"]
            with suppress(CapReached):
                check_fits(rows.charged, next_usd, manifest.ledger.cap_usd)
                self.check.fail(MANIFEST, f"stop_reason: {said}; the cap had room for another")


def _adopted_model(context: VerificationContext) -> str | None:
    """The model whose answers were taken over, which the others have to come from as well."""
    # What cannot be read is found by those who look at each record.
    with suppress(OSError, ValueError):
        for record in RunDirectory(context.root).records():
            if record.task_id in context.adopted:
                return record.model
    return None
