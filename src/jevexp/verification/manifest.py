"""Manifest and summary: they agree with the files, the records, other formulas and themselves."""

import hashlib
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from jevexp.core.identity import ClaimStatus
from jevexp.core.json import dumps, loads, representable
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.datasets.resolve import PIN_FIELDS
from jevexp.errors import InputError
from jevexp.harness.harness import make_harness
from jevexp.harness.stops import ExpectedModel, StopReason, StopRules
from jevexp.harness.summary import summarize
from jevexp.identity.fingerprint import FINGERPRINT_VERSION, fingerprint
from jevexp.identity.reconcile import declared_fields, judge, overall
from jevexp.ledger.state import CapReached, check_fits
from jevexp.settings import PINNED_COMMIT, Harness, ModelIdentity
from jevexp.store import Manifest, RunStatus
from jevexp.store.directory import MANIFEST, RESULTS, SUMMARY
from jevexp.store.manifest import MANIFEST_VERSION
from jevexp.untrusted.files import read_document
from jevexp.verification.check import Check, differences, same
from jevexp.verification.context import VerificationContext
from jevexp.verification.ledger import Rows

_EXIT_STATUSES: dict[RunStatus, set[int | None]] = {
    RunStatus.RUNNING: {None},
    RunStatus.COMPLETE: {0},
    RunStatus.INCOMPLETE: {1},
    RunStatus.CRASHED: {1},
    RunStatus.REFUSED: {2},
    RunStatus.INTERRUPTED: {128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP},
}
_BINS = 10
# Only the ledger knows of these: no record follows.
_OF_THE_LEDGER = frozenset(
    {StopReason.CAP_REACHED, StopReason.OVERCHARGED, StopReason.LEDGER_UNAVAILABLE}
)
# How far the newest request may be ahead of the slowest answer, for each that is under way.
_PLACES_EACH = 64


def read_manifest(root: Path, *, here: bool) -> tuple[Check, Manifest | None]:
    """The manifest, and the check that it is one; null where it is none."""
    check = Check("manifest", "configuration hash, counts, models, status and exit status agree")
    if not here:
        check.reason = f"there is no {MANIFEST}"
    else:
        with check.guarded(MANIFEST):
            data = read_document(root / MANIFEST, follow_links=False)
            return check, Manifest.model_validate(loads(data))
    return check, None


def check_manifest(
    context: VerificationContext, records: Mapping[str, Record], check: Check
) -> None:
    """Hold the manifest against its own configuration, the records and how the run ended."""
    manifest = context.manifest
    with check.guarded(MANIFEST):
        _expect(manifest, _by_config(manifest), check)
        if manifest.ledger.cap_usd > context.resolved["caps"]["cap_usd"]:
            check.fail(MANIFEST, "ledger.cap_usd: above the configured cap")
        if (earlier := manifest.software.earlier) is not None:
            resumed = manifest.resumed.run if manifest.resumed else None
            last = earlier[-1].run if earlier else None
            check.expect("software.earlier, the last one's run", last, resumed)
        check.count += 1
        for fault in _ending_faults(manifest):
            check.fail(MANIFEST, fault)
        if manifest.finished is not None:
            if SUMMARY not in context.tree.files:
                check.fail(SUMMARY, "is missing from a run that ended")
            attempts = records.values()
            by_records = {
                "counts.attempted": len(attempts),
                "counts.answered": sum(record.ok for record in attempts),
                "counts.valid": sum(record.ok and record.valid for record in attempts),
                "counts.truncated": sum(record.truncated for record in attempts),
                "model.resolved": sorted(
                    {record.model for record in attempts if record.ok and record.model}
                ),
                "cost_basis": sorted({record.cost_basis for record in attempts}),
                "model.session": manifest.backend.description.get("model"),
            }
            _expect(manifest, by_records, check, source=f", by {RESULTS}")


def _expect(
    manifest: Manifest, expected: Mapping[str, Any], check: Check, *, source: str = ""
) -> None:
    """Compare fields by their paths."""
    stored = manifest.model_dump(mode="json")
    for path, value in expected.items():
        check.expect(f"{path}{source}", reduce(getitem, path.split("."), stored), value)


def _by_config(manifest: Manifest) -> dict[str, Any]:
    """What follows from the resolved configuration."""
    resolved, n_tasks = manifest.config.resolved, manifest.dataset.n_tasks
    dataset, caps = resolved["dataset"], resolved["caps"]
    canonical = dumps(resolved, sort_keys=True).encode()
    expected = {
        "config.sha256": hashlib.sha256(canonical).hexdigest(),
        "dataset.name": dataset["name"],
        "dataset.pin": {field: dataset[field] for field in PIN_FIELDS},
        "backend.name": resolved["backend"]["name"],
        "model.requested": resolved["model"]["alias"],
        "model.declared": resolved["model"],
        "harness.name": resolved["harness"]["name"],
        "harness.commit": PINNED_COMMIT,
        "ledger.reason": caps["reason"],
        "ledger.shared": bool(caps["ledger"] or caps.get("ledger_url") or manifest.sweep),
        "counts.requested": min(caps["limit"] or n_tasks, n_tasks),
        "version": MANIFEST_VERSION,
    }
    if "runner" in resolved:
        expected["concurrency"] = resolved["runner"]["concurrency"]
    return expected


def _ending_faults(manifest: Manifest) -> Iterator[str]:
    """What does not go together with how the run ended."""
    status, counts = manifest.status, manifest.counts
    if manifest.exit_status not in _EXIT_STATUSES[status]:
        yield f"exit_status: {manifest.exit_status} is not that of a {status} run"
    if (manifest.finished is None) is not (status is RunStatus.RUNNING):
        yield f"finished: does not go with the status {status}"
    if status in (RunStatus.COMPLETE, RunStatus.INCOMPLETE) and (
        (status is RunStatus.COMPLETE) is not (counts.valid == counts.requested)
    ):
        yield f"status: {status} with {counts.valid} valid of {counts.requested}"
    named = status in (RunStatus.REFUSED, RunStatus.CRASHED, RunStatus.INTERRUPTED)
    if (manifest.error is not None) is not named:
        yield f"error: does not go with the status {status}"
    # A crash has one where the operating system gave it.
    if status is not RunStatus.CRASHED and (
        (manifest.message is not None) is not (status is RunStatus.REFUSED)
    ):
        yield f"message: does not go with the status {status}"
    if status is RunStatus.REFUSED and counts.attempted:
        yield "status: a refused run asked nothing, and this one has records"


def check_stop(
    context: VerificationContext,
    records: Mapping[str, Record],
    lines: Mapping[str, int],
    rows: Rows,
) -> Check:
    """Check that the tasks ended where a rule ended them; `lines` are those of the records."""
    check = Check("stop", "the stop reason is the one that the records lead to")
    manifest, at_once = context.manifest, context.manifest.concurrency
    reason, counts = manifest.stop_reason, manifest.counts
    # The others have to come from the model whose answers were taken over.
    taken_over = (record.model for task, record in records.items() if task in context.adopted)
    model = manifest.backend.description.get("model")
    model = next(taken_over, None) if model is None else model
    strict = context.resolved["identity"] == "strict"
    native = manifest.harness.name == "native"
    rules = StopRules(ExpectedModel(model) if strict else None, bodies=native)
    rule: StopReason | None = None
    n_after = 0
    own = [task_id for task_id in records if task_id not in context.adopted]
    for task_id in own:
        if rule is None:
            rule = rules.after(records[task_id])
            continue
        n_after += 1
        # Requests that were under way when the rule applied come to their records.
        if at_once == 1 or n_after > at_once * _PLACES_EACH:
            check.fail(RESULTS, f"a record after {rule}", line=lines[task_id])
    check.count = len(own) + 1
    if manifest.status is not RunStatus.INCOMPLETE:
        # Whatever ended it otherwise may have come before the rule was noticed.
        if reason is not None:
            check.fail(MANIFEST, f"stop_reason: a run that is {manifest.status} has none")
        return check
    if reason in _OF_THE_LEDGER:
        for fault in _ledger_faults(context, rule, rows):
            check.fail(MANIFEST, f"stop_reason: {reason}; {fault}")
    elif reason != rule:
        check.fail(MANIFEST, f"stop_reason: {reason}; the records lead to {rule or 'no rule'}")
    if reason is None and counts.attempted < counts.requested:
        check.fail(MANIFEST, "counts.attempted: no stop reason says why tasks are missing")
    return check


def _ledger_faults(
    context: VerificationContext, rule: StopReason | None, rows: Rows
) -> Iterator[str]:
    manifest = context.manifest
    if rule is not None:
        yield f"the records lead to {rule}"
    if manifest.counts.attempted >= manifest.counts.requested:
        yield "no task is missing"
    if not rows.here:
        return
    if manifest.stop_reason == StopReason.OVERCHARGED and not rows.overcharged:
        yield "no charge is above its reservation"
    # The others' charges on a shared ledger are not here, a person's own backend may reserve more
    # than is configured, and what several requests at once gave back came later.
    alone = not manifest.ledger.shared and manifest.concurrency == 1
    if manifest.stop_reason == StopReason.CAP_REACHED and alone and not context.foreign_amounts:
        next_usd = context.resolved["caps"]["reserve_usd"]
        with suppress(CapReached):
            check_fits(rows.charged, next_usd, manifest.ledger.cap_usd)
            yield "the cap had room for another"


def check_identity(context: VerificationContext, records: Mapping[str, Record]) -> Check:
    """Judge every field again, and hash again what the fingerprint is made of."""
    check = Check("identity", "every verdict on the model, and the fingerprint of what it hashes")
    manifest = context.manifest
    report, stored = manifest.identity, manifest.fingerprint
    if report is None or stored is None:
        # A run that was killed has counted nothing.
        if manifest.counts.attempted or records:
            check.fail(MANIFEST, "identity: a run with records knows whom it asked")
        else:
            check.reason = "the provider was never opened"
        return check
    with check.guarded(MANIFEST):
        claims = declared_fields(ModelIdentity.of(context.resolved["model"], at="model"))
        declared = {
            name: field.declared
            for name, field in report.fields.items()
            if field.declared is not None
        }
        expected = _in_order(representable(claims))
        check.expect("identity.fields, what is declared", _in_order(declared), expected)
        for name, field in report.fields.items():
            verdict = judge(name, field.declared, field.observed).verdict
            check.expect(f"identity.fields.{name}.verdict", field.verdict, verdict)
        check.expect("identity.verdict", report.verdict, overall(report.fields, report.findings))
        contradicted = report.verdict is ClaimStatus.CONTRADICTED
        if contradicted and context.resolved["identity"] == "strict":
            check.expect("status", manifest.status, RunStatus.REFUSED)
        if stored.version > FINGERPRINT_VERSION:
            check.notes.append(f"the fingerprint is of version {stored.version}")
            return check
        computed = fingerprint(manifest.backend.description, report, manifest.concurrency)
        check.expect("fingerprint.value", stored.value, computed.value)
        check.expect("fingerprint.inputs", _in_order(stored.inputs), _in_order(computed.inputs))
    return check


def _in_order(fields: Mapping[str, Any]) -> str:
    return dumps(fields, sort_keys=True)


def check_sums(context: VerificationContext, records: Mapping[str, Record]) -> list[Check]:
    """The summary as a whole, and its headline numbers by other formulas."""
    summary = Check("summary", "every number of the summary, computed again from the records")
    numbers = Check(
        "numbers", "accuracy, Brier and ECE by independent formulas, in exact fractions"
    )
    if SUMMARY not in context.tree.files:
        summary.reason = numbers.reason = f"there is no {SUMMARY}"
        return [summary, numbers]
    stored: Any = None
    with summary.guarded(SUMMARY):
        stored = loads(read_document(context.root / SUMMARY, follow_links=False))
        if not isinstance(stored, dict):
            summary.fail(SUMMARY, "is no object")
    if context.tasks is None or not isinstance(stored, dict):
        readable = isinstance(stored, dict)
        reason = "tasks are not here" if readable else "the summary cannot be read"
        summary.reason = numbers.reason = reason
        return [summary, numbers]
    with summary.guarded(SUMMARY):
        computed = _summarize(context, context.tasks, records, summary)
        summary.count += _count_leaves(computed)
        for difference in differences(stored, computed):
            summary.fail(SUMMARY, difference)
    with numbers.guarded(SUMMARY):
        _check_numbers(context.tasks, records, stored, numbers)
    return [summary, numbers]


def _summarize(
    context: VerificationContext, tasks: Sequence[Task], records: Mapping[str, Record], check: Check
) -> dict[str, Any]:
    """By the run's own harness where it is here; the numbers are those of ours."""
    charged_usd = context.manifest.ledger.charged_usd
    if context.manifest.harness.name == "upstream":
        try:
            upstream = make_harness(Harness(name="upstream", path=None))
            summary = upstream.summarize(tasks, records.values(), ledger_charged_usd=charged_usd)
            return summary.plain()
        except InputError:
            check.notes.append("the pinned harness is not here; computed with ours")
    return summarize(tasks, records.values(), ledger_charged_usd=charged_usd).plain()


def _count_leaves(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value
    return sum(map(_count_leaves, parts)) if isinstance(value, dict | list) else 1


def _check_numbers(
    tasks: Sequence[Task], records: Mapping[str, Record], summary: Mapping[str, Any], check: Check
) -> None:
    """Hold the summary's headline numbers against what other formulas make of the records.

    All of them are exact here, in fractions, where the summary's are sums of floats:

    - accuracy from the distributions: a task counts where no other label has more than the right
      one, nor as much and an earlier name;
    - Brier: Σ (p - y)² = Σ p² - 2·p[right] + 1, since Σ y² = 1 and only one y is not 0;
    - ECE: 1/n · Σ over the bins of |Σ confidence - Σ correct|, the bins' sizes having cancelled.
    """
    attempted = n_distributions = right = 0
    brier = Fraction(0)
    gaps = [Fraction(0)] * _BINS
    for task in tasks:
        record = records.get(task.id)
        if record is None or not task.scorable or task.gold is None:
            continue
        attempted += 1
        if (probs := record.probs) is None:
            right += bool(record.correct)
            continue
        n_distributions += 1
        p_right = probs[task.gold]
        is_right = not any(
            p > p_right or (p == p_right and label < task.gold) for label, p in probs.items()
        )
        right += is_right
        brier += sum(Fraction(p) ** 2 for p in probs.values()) - 2 * Fraction(p_right) + 1
        confidence = max(probs.values())
        gaps[min(int(confidence * _BINS), _BINS - 1)] += Fraction(confidence) - is_right
    numbers = {
        "accuracy": (Fraction(right), attempted),
        "brier_mean": (brier, n_distributions),
        "ece": (sum(map(abs, gaps), Fraction(0)), n_distributions),
    }
    for name, (total, count) in numbers.items():
        check.count += 1
        with check.guarded(SUMMARY):
            stored = summary[name]
            stored = stored["ece"] if name == "ece" and stored is not None else stored
            computed = float(total / count) if count else None
            if not same(stored, computed):
                check.fail(SUMMARY, f"{name}: {stored!r}, by another formula {computed!r}")
