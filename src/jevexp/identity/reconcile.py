"""Holds what was declared against what is observed: one status a field, and one over all.

>>> report = reconcile(settings.model, observe(backend.describe(), weights=path))
>>> report.status, list(report.contradictions)
(<ClaimStatus.CONTRADICTED: 'contradicted'>, ['quantization.ftype'])
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jevexp.core.ftype import ftype_of
from jevexp.core.identity import (
    ClaimStatus,
    FieldReport,
    Finding,
    IdentityReport,
    Level,
    ObservedValue,
    Source,
)
from jevexp.core.json import representable
from jevexp.identity.findings import findings, is_name, same_name
from jevexp.identity.observed import Observed
from jevexp.settings import ModelIdentity, WeightFile

# What one of these confirms is the model itself, not how it is named or served.
_OF_THE_MODEL = ("weights.", "quantization.", "chat_template.", "files.")
_FILE_FIELDS = ("file", "path", "sha256", "bytes", "repository", "revision")


def reconcile(declared: ModelIdentity, observed: Observed) -> IdentityReport:
    """One status for every field that is declared or observed.

    The strongest source decides: the file's bytes before its header before the server, and for
    the chat template the server first, since it renders. Sources that disagree with each other
    contradict whatever is declared. Names and paths prove nothing and are never contradicted.
    """
    claims = declared_fields(declared)
    names = dict.fromkeys([*claims, *observed.values])
    fields = {
        name: judge(name, claims.get(name), _values(name, claims, observed)) for name in names
    }
    standing_out = list(findings(claims, observed))
    report = IdentityReport(
        verdict=overall(fields, standing_out),
        fields=fields,
        findings=standing_out,
        notes=list(observed.notes),
        bytes_hashed=observed.bytes_hashed,
        bytes_read=observed.bytes_read,
    )
    # A server may say anything; the manifest keeps what JSON can hold.
    return IdentityReport.model_validate(representable(report.model_dump(mode="json")))


def _values(name: str, claims: Mapping[str, Any], observed: Observed) -> list[ObservedValue]:
    """What is observed about a field; a label that names a file type is held against that."""
    if name == "quantization.label" and ftype_of(str(claims[name])):
        return list(observed.values.get("quantization.ftype", ()))
    return list(observed.values.get(name, ()))


def judge(name: str, claim: Any, values: Sequence[ObservedValue]) -> FieldReport:
    """The status of one field, of what is claimed (null: nothing) and what each source says."""
    judged = [v.value for v in values if v.source is not Source.SERVER_GUESS]
    if is_name(name):
        status = _name_status(name, claim, judged)
    elif _disagree(name, judged):
        status = ClaimStatus.CONTRADICTED
    elif claim is None:
        status = ClaimStatus.OBSERVED_ONLY
    elif not judged:
        status = ClaimStatus.DECLARED_ONLY
    else:
        same = _comparable(name, claim) == judged[0]
        status = ClaimStatus.CONFIRMED if same else ClaimStatus.CONTRADICTED
    return FieldReport(verdict=status, declared=claim, observed=list(values))


def _name_status(name: str, claim: Any, observed: list[Any]) -> ClaimStatus:
    if claim is None:
        return ClaimStatus.OBSERVED_ONLY
    same = any(same_name(name, claim, value) for value in observed)
    return ClaimStatus.CONFIRMED if same else ClaimStatus.DECLARED_ONLY


def _disagree(name: str, values: list[Any]) -> bool:
    # A server may be told to render another template than the file's; that is a finding.
    return name != "chat_template.sha256" and any(value != values[0] for value in values)


def _comparable(name: str, claim: Any) -> Any:
    if name != "quantization.label":
        return claim
    ftype = ftype_of(claim)
    return ftype.name if ftype else claim


def overall(fields: Mapping[str, FieldReport], standing_out: Iterable[Finding]) -> ClaimStatus:
    """The status over all fields and findings; see `IdentityReport.verdict`."""
    statuses = [field.status for field in fields.values()]
    if ClaimStatus.CONTRADICTED in statuses or any(
        finding.level is Level.CONTRADICTION for finding in standing_out
    ):
        return ClaimStatus.CONTRADICTED
    claims = {
        name: field
        for name, field in fields.items()
        if field.declared is not None and not is_name(name)
    }
    if any(
        name.startswith(_OF_THE_MODEL)
        for name, field in claims.items()
        if field.status is ClaimStatus.CONFIRMED
    ):
        return ClaimStatus.CONFIRMED
    if claims or ClaimStatus.OBSERVED_ONLY not in statuses:
        return ClaimStatus.DECLARED_ONLY
    return ClaimStatus.OBSERVED_ONLY


def declared_fields(model: ModelIdentity) -> dict[str, Any]:
    """Every claim by its dotted name; what is not claimed is absent.

    Where to get a file and notes to the reader are no claims: `weights.package` and
    `quantization.note` are left out.
    """
    return {name: value for name, value in _fields(model) if value is not None}


def _fields(model: ModelIdentity) -> Iterator[tuple[str, Any]]:
    yield "alias", model.alias
    yield from _file_fields("weights", model.weights)
    yield "quantization.label", model.quantization.label
    yield "quantization.ftype", model.quantization.ftype
    yield "quantization.tensor_types", model.quantization.tensor_types
    yield "chat_template.file", model.chat_template.file
    yield "chat_template.sha256", model.chat_template.sha256
    for name, file in sorted(model.files.items()):
        yield from _file_fields(f"files.{name}", file)
    yield "context", model.context
    yield "cache_type_k", model.cache_type_k
    yield "cache_type_v", model.cache_type_v


def _file_fields(prefix: str, file: WeightFile) -> Iterator[tuple[str, Any]]:
    for name in _FILE_FIELDS:
        yield f"{prefix}.{name}", getattr(file, name)
