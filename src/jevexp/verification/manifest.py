"""The manifest: its parts agree with each other and with the files, and so does the identity."""

import hashlib
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jevexp.core.identity import ClaimStatus, IdentityReport
from jevexp.core.json import dumps, loads, representable
from jevexp.core.record import Record
from jevexp.datasets.resolve import PIN_FIELDS
from jevexp.identity.fingerprint import FINGERPRINT_VERSION, fingerprint
from jevexp.identity.reconcile import declared_fields, judge, overall
from jevexp.settings import PINNED_COMMIT, ModelIdentity
from jevexp.store import Manifest, RunStatus
from jevexp.store.directory import MANIFEST, RESULTS, SUMMARY
from jevexp.store.manifest import MANIFEST_VERSION
from jevexp.untrusted.files import read_document
from jevexp.verification.check import Check
from jevexp.verification.context import VerificationContext

_EXIT_STATUSES: dict[RunStatus, set[int | None]] = {
    RunStatus.RUNNING: {None},
    RunStatus.COMPLETE: {0},
    RunStatus.INCOMPLETE: {1},
    RunStatus.CRASHED: {1},
    RunStatus.REFUSED: {2},
    RunStatus.INTERRUPTED: {128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP},
}


def no_manifest() -> Check:
    """The check of a manifest that was never written."""
    check = Check("manifest", "configuration hash, counts, models, status and exit status agree")
    check.skip(f"there is no {MANIFEST}")
    return check


def read_manifest(root: Path) -> tuple[Check, Manifest | None]:
    """The manifest, and the check that it is one; null where it is none."""
    check = no_manifest()
    check.reason = None
    with check.guarded(MANIFEST):
        data = read_document(root / MANIFEST, follow_links=False)
        return check, Manifest.model_validate(loads(data))
    return check, None


def check_manifest(
    context: VerificationContext, records: Mapping[str, Record], check: Check
) -> None:
    """Hold the manifest against its own configuration, the records and how the run ended.

    Args:
        context: the run.
        records: every record of the run.
        check: what is found is added to it.
    """
    with check.guarded(MANIFEST):
        _check_config(context.manifest, check)
        _check_ending(context, check)
        if context.manifest.finished is not None:
            _check_counts(context.manifest, records, check)


def _check_config(manifest: Manifest, check: Check) -> None:
    resolved = manifest.config.resolved
    canonical = dumps(resolved, sort_keys=True).encode()
    said: dict[str, tuple[Any, Any]] = {
        "config.sha256": (manifest.config.sha256, hashlib.sha256(canonical).hexdigest()),
        "dataset.name": (manifest.dataset.name, resolved["dataset"]["name"]),
        "dataset.pin": (
            manifest.dataset.pin.model_dump(mode="json"),
            {field: resolved["dataset"][field] for field in PIN_FIELDS},
        ),
        "backend.name": (manifest.backend.name, resolved["backend"]["name"]),
        "model.requested": (manifest.model.requested, resolved["model"]["alias"]),
        "model.declared": (manifest.model.declared.model_dump(mode="json"), resolved["model"]),
        "harness.name": (manifest.harness.name, resolved["harness"]["name"]),
        "harness.commit": (manifest.harness.commit, PINNED_COMMIT),
        "ledger.reason": (manifest.ledger.reason, resolved["caps"]["reason"]),
        "counts.requested": (
            manifest.counts.requested,
            min(resolved["caps"]["limit"] or manifest.dataset.n_tasks, manifest.dataset.n_tasks),
        ),
    }
    for name, (found, expected) in said.items():
        check.expect(name, found, expected, MANIFEST)
    caps = resolved["caps"]
    shared = bool(caps["ledger"] or caps.get("ledger_url") or manifest.sweep)
    check.expect("ledger.shared", manifest.ledger.shared, shared, MANIFEST)
    check.expect("version", manifest.version, MANIFEST_VERSION, MANIFEST)
    if (earlier := manifest.software.earlier) is not None:
        resumed = manifest.resumed.run if manifest.resumed else None
        last = earlier[-1].run if earlier else None
        check.expect("software.earlier, the last one's run", last, resumed, MANIFEST)
    if "runner" in resolved:
        check.expect(
            "concurrency", manifest.concurrency, resolved["runner"]["concurrency"], MANIFEST
        )
    if manifest.ledger.cap_usd > resolved["caps"]["cap_usd"]:
        check.fail(MANIFEST, "ledger.cap_usd: above the configured cap")


def _check_ending(context: VerificationContext, check: Check) -> None:
    manifest, counts = context.manifest, context.manifest.counts
    status = manifest.status
    check.count += 1
    if manifest.exit_status not in _EXIT_STATUSES[status]:
        check.fail(MANIFEST, f"exit_status: {manifest.exit_status} is not that of a {status} run")
    if (manifest.finished is None) is not (status is RunStatus.RUNNING):
        check.fail(MANIFEST, f"finished: does not go with the status {status}")
    if (status is RunStatus.COMPLETE) is not (counts.valid == counts.requested) and status in (
        RunStatus.COMPLETE,
        RunStatus.INCOMPLETE,
    ):
        check.fail(MANIFEST, f"status: {status} with {counts.valid} valid of {counts.requested}")
    named = status in (RunStatus.REFUSED, RunStatus.CRASHED, RunStatus.INTERRUPTED)
    if (manifest.error is not None) is not named:
        check.fail(MANIFEST, f"error: does not go with the status {status}")
    # Of a crash it is what the operating system said, if it was that.
    if status is not RunStatus.CRASHED and (
        (manifest.message is not None) is not (status is RunStatus.REFUSED)
    ):
        check.fail(MANIFEST, f"message: does not go with the status {status}")
    if status is RunStatus.REFUSED and counts.attempted:
        check.fail(MANIFEST, "status: a refused run asked nothing, and this one has records")
    if manifest.finished is not None and SUMMARY not in context.tree.files:
        check.fail(SUMMARY, "is missing from a run that ended")


def _check_counts(manifest: Manifest, records: Mapping[str, Record], check: Check) -> None:
    found = list(records.values())
    said = manifest.counts
    counted = {
        "counts.attempted": (said.attempted, len(found)),
        "counts.answered": (said.answered, sum(record.ok for record in found)),
        "counts.valid": (said.valid, sum(record.ok and record.valid for record in found)),
        "model.resolved": (
            manifest.model.resolved,
            sorted({record.model for record in found if record.ok and record.model}),
        ),
        "cost_basis": (manifest.cost_basis, sorted({record.cost_basis for record in found})),
        "model.session": (manifest.model.session, manifest.backend.description.get("model")),
    }
    for name, (stored, expected) in counted.items():
        check.expect(f"{name}, by {RESULTS}", stored, expected, MANIFEST)


def check_identity(context: VerificationContext, records: Mapping[str, Record]) -> Check:
    """Judge every field again, and hash again what the fingerprint is made of."""
    check = Check("identity", "every verdict on the model, and the fingerprint of what it hashes")
    manifest = context.manifest
    if manifest.identity is None or manifest.fingerprint is None:
        # A run that was killed has counted nothing.
        if manifest.counts.attempted or records:
            check.fail(MANIFEST, "identity: a run with records knows whom it asked")
        else:
            check.skip("the provider was never opened")
        return check
    with check.guarded(MANIFEST):
        report = manifest.identity
        _check_fields(context, report, check)
        contradicted = report.verdict is ClaimStatus.CONTRADICTED
        if contradicted and context.resolved["identity"] == "strict":
            check.expect("status", manifest.status, RunStatus.REFUSED, MANIFEST)
        if manifest.fingerprint.version > FINGERPRINT_VERSION:
            check.notes.append(f"the fingerprint is of version {manifest.fingerprint.version}")
            return check
        found = fingerprint(manifest.backend.description, report, manifest.concurrency)
        check.expect("fingerprint.value", manifest.fingerprint.value, found.value, MANIFEST)
        stored = dumps(manifest.fingerprint.inputs, sort_keys=True)
        check.expect("fingerprint.inputs", stored, dumps(found.inputs, sort_keys=True), MANIFEST)
    return check


def _check_fields(context: VerificationContext, report: IdentityReport, check: Check) -> None:
    claims = declared_fields(ModelIdentity.of(context.resolved["model"], at="model"))
    declared = {
        name: field.declared for name, field in report.fields.items() if field.declared is not None
    }
    check.expect(
        "identity.fields, what is declared",
        dumps(declared, sort_keys=True),
        dumps(representable(claims), sort_keys=True),
        MANIFEST,
    )
    for name, field in report.fields.items():
        again = judge(name, field.declared, field.observed)
        check.expect(f"identity.fields.{name}.verdict", field.verdict, again.verdict, MANIFEST)
    verdict = overall(report.fields, report.findings)
    check.expect("identity.verdict", report.verdict, verdict, MANIFEST)
