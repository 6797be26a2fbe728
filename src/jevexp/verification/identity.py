"""Identity and fingerprint of a run, computed again from what its manifest holds."""

from collections.abc import Mapping
from typing import Any

from jevexp.core.json import dumps, representable
from jevexp.identity.declared import declared_fields
from jevexp.identity.findings import Finding, Level
from jevexp.identity.fingerprint import FINGERPRINT_VERSION, fingerprint
from jevexp.identity.observed import Source, Value
from jevexp.identity.reconcile import judge, overall
from jevexp.identity.report import FieldReport, IdentityReport, Verdict
from jevexp.settings import ModelIdentity
from jevexp.store import RunStatus
from jevexp.store.directory import MANIFEST
from jevexp.verification.check import Check
from jevexp.verification.subject import Subject


def check_identity(subject: Subject) -> Check:
    """Judge every field again, and hash again what the fingerprint is made of."""
    check = Check("identity", "every verdict on the model, and the fingerprint of what it hashes")
    manifest = subject.manifest
    if manifest.identity is None or manifest.fingerprint is None:
        if manifest.counts.attempted:
            check.fail(MANIFEST, "identity: a run with records knows whom it asked")
        else:
            check.skip("the provider was never opened")
        return check
    with check.guarded(MANIFEST):
        report = _report(manifest.identity)
        _check_fields(subject, report, check)
        contradicted = report.verdict is Verdict.CONTRADICTED
        if contradicted and subject.resolved["identity"] == "strict":
            check.expect("status", manifest.status, RunStatus.REFUSED, MANIFEST)
        if manifest.fingerprint.version > FINGERPRINT_VERSION:
            check.notes.append(f"the fingerprint is of version {manifest.fingerprint.version}")
            return check
        found = fingerprint(manifest.backend["description"], report, manifest.concurrency)
        check.expect("fingerprint.value", manifest.fingerprint.value, found.value, MANIFEST)
        stored = dumps(manifest.fingerprint.inputs, sort_keys=True)
        check.expect("fingerprint.inputs", stored, dumps(found.inputs, sort_keys=True), MANIFEST)
    return check


def _check_fields(subject: Subject, report: IdentityReport, check: Check) -> None:
    claims = declared_fields(ModelIdentity.of(subject.resolved["model"], at="model"))
    declared = {field.name: field.declared for field in report.fields if field.declared is not None}
    check.expect(
        "identity.fields, what is declared",
        dumps(declared, sort_keys=True),
        dumps(representable(claims), sort_keys=True),
        MANIFEST,
    )
    for field in report.fields:
        again = judge(field.name, field.declared, field.observed)
        check.expect(
            f"identity.fields.{field.name}.verdict", field.verdict, again.verdict, MANIFEST
        )
    verdict = overall(report.fields, report.findings)
    check.expect("identity.verdict", report.verdict, verdict, MANIFEST)


def _report(section: Mapping[str, Any]) -> IdentityReport:
    """The report that the manifest keeps as plain JSON."""
    fields = tuple(
        FieldReport(
            name,
            Verdict(field["verdict"]),
            field["declared"],
            tuple(Value(one["value"], Source(one["source"])) for one in field["observed"]),
        )
        for name, field in section["fields"].items()
    )
    findings = tuple(
        Finding(Level(one["level"]), one["code"], one["field"], one["message"])
        for one in section["findings"]
    )
    return IdentityReport(
        verdict=Verdict(section["verdict"]),
        fields=fields,
        findings=findings,
        notes=tuple(section["notes"]),
        bytes_hashed=section["bytes_hashed"],
        bytes_read=section["bytes_read"],
    )
