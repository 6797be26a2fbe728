"""Holds what was declared against what is observed: one verdict a field, and one over all.

>>> report = reconcile(settings.model, observe(backend.describe(), weights=path))
>>> report.verdict, [field.name for field in report.contradictions]
(<Verdict.CONTRADICTED: 'contradicted'>, ['quantization.ftype'])
"""

from collections.abc import Iterable, Mapping
from typing import Any

from jevexp.core.ftype import ftype_of
from jevexp.identity.declared import declared_fields
from jevexp.identity.findings import Finding, Level, findings, is_name, same_name
from jevexp.identity.observed import Observed, Source, Value
from jevexp.identity.report import FieldReport, IdentityReport, Verdict
from jevexp.settings import ModelIdentity

# What one of these confirms is the model itself, not how it is named or served.
_OF_THE_MODEL = ("weights.", "quantization.", "chat_template.", "files.")


def reconcile(declared: ModelIdentity, observed: Observed) -> IdentityReport:
    """One verdict for every field that is declared or observed.

    The strongest source decides: the file's bytes before its header before the server, and for
    the chat template the server first, since it renders. Sources that disagree with each other
    contradict whatever is declared. Names and paths prove nothing and are never contradicted.
    """
    claims = declared_fields(declared)
    fields = tuple(
        judge(name, claims.get(name), _values(name, claims, observed))
        for name in dict.fromkeys([*claims, *observed.values])
    )
    found = tuple(findings(claims, observed))
    return IdentityReport(
        verdict=overall(fields, found),
        fields=fields,
        findings=found,
        notes=observed.notes,
        bytes_hashed=observed.bytes_hashed,
        bytes_read=observed.bytes_read,
    )


def _values(name: str, claims: Mapping[str, Any], observed: Observed) -> tuple[Value, ...]:
    """What is observed about a field; a label that names a file type is held against that."""
    if name == "quantization.label" and ftype_of(str(claims[name])):
        return observed.values.get("quantization.ftype", ())
    return observed.values.get(name, ())


def judge(name: str, claim: Any, values: tuple[Value, ...]) -> FieldReport:
    """The verdict on one field, of what is claimed (null: nothing) and what each source says."""
    judged = [v.value for v in values if v.source is not Source.SERVER_GUESS]
    if is_name(name):
        verdict = _name_verdict(name, claim, judged)
    elif _disagree(name, judged):
        verdict = Verdict.CONTRADICTED
    elif claim is None:
        verdict = Verdict.OBSERVED_ONLY
    elif not judged:
        verdict = Verdict.DECLARED_ONLY
    else:
        same = _comparable(name, claim) == judged[0]
        verdict = Verdict.CONFIRMED if same else Verdict.CONTRADICTED
    return FieldReport(name, verdict, claim, values)


def _name_verdict(name: str, claim: Any, found: list[Any]) -> Verdict:
    if claim is None:
        return Verdict.OBSERVED_ONLY
    same = any(same_name(name, claim, value) for value in found)
    return Verdict.CONFIRMED if same else Verdict.DECLARED_ONLY


def _disagree(name: str, values: list[Any]) -> bool:
    # A server may be told to render another template than the file's; that is a finding.
    return name != "chat_template.sha256" and any(value != values[0] for value in values)


def _comparable(name: str, claim: Any) -> Any:
    if name != "quantization.label":
        return claim
    found = ftype_of(claim)
    return found.name if found else claim


def overall(fields: Iterable[FieldReport], found: Iterable[Finding]) -> Verdict:
    """The verdict over all fields and findings; see `IdentityReport.verdict`."""
    verdicts = [field.verdict for field in fields]
    if Verdict.CONTRADICTED in verdicts or any(f.level is Level.CONTRADICTION for f in found):
        return Verdict.CONTRADICTED
    claims = [field for field in fields if field.declared is not None and not is_name(field.name)]
    proven = [field for field in claims if field.verdict is Verdict.CONFIRMED]
    if any(field.name.startswith(_OF_THE_MODEL) for field in proven):
        return Verdict.CONFIRMED
    if claims or Verdict.OBSERVED_ONLY not in verdicts:
        return Verdict.DECLARED_ONLY
    return Verdict.OBSERVED_ONLY
