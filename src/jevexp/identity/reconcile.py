"""Holds what was declared against what is observed: one status a field, and one over all.

>>> report = reconcile(settings.model, observe(backend.describe(), weights=path))
>>> report.status, list(report.contradictions)
(<ClaimStatus.CONTRADICTED: 'contradicted'>, ['quantization.ftype'])
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jevexp.core.ftype import ftype_of, quantizations_in
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
from jevexp.identity.observed import DECISION_FIELDS, Observed
from jevexp.settings import ModelIdentity

# What one of these confirms is the model itself, not how it is named or served.
_OF_THE_MODEL = ("weights.", "quantization.", "chat_template.", "decision.", "files.")
_FILE_FIELDS = ("file", "path", "sha256", "bytes", "repository", "revision")


def reconcile(declared: ModelIdentity, observed: Observed) -> IdentityReport:
    """One status for every field that is declared or observed.

    The strongest source decides: the file's bytes before its header before the server, and for
    the chat template the server first, since it renders. Sources that disagree with each other
    contradict whatever is declared. Names and paths prove nothing and are never contradicted.
    """
    claims = declared_fields(declared)
    fields = {}
    for name in dict.fromkeys([*claims, *observed.values]):
        # A label that names a file type is held against the one that is observed.
        labels_type = name == "quantization.label" and ftype_of(str(claims[name]))
        values = observed.values.get("quantization.ftype" if labels_type else name, ())
        fields[name] = judge(name, claims.get(name), values)
    findings = list(_findings(claims, observed))
    report = IdentityReport(
        verdict=overall(fields, findings),
        fields=fields,
        findings=findings,
        notes=list(observed.notes),
        bytes_hashed=observed.bytes_hashed,
        bytes_read=observed.bytes_read,
    )
    # A server may say anything; the manifest keeps what JSON can hold.
    return IdentityReport.model_validate(representable(report.model_dump(mode="json")))


def judge(name: str, claim: Any, values: Sequence[ObservedValue]) -> FieldReport:
    """The status of one field, of what is claimed (null: nothing) and what each source says."""
    certain = [v.value for v in values if v.source is not Source.SERVER_GUESS]
    # A server may be told to render another template than the file's; that is a finding.
    one_value = name == "chat_template.sha256" or all(value == certain[0] for value in certain)
    if claim is None and (_is_name(name) or one_value):
        status = ClaimStatus.OBSERVED_ONLY
    elif _is_name(name):
        same = any(_same_name(name, claim, value) for value in certain)
        status = ClaimStatus.CONFIRMED if same else ClaimStatus.DECLARED_ONLY
    elif not one_value:
        status = ClaimStatus.CONTRADICTED
    elif not certain:
        status = ClaimStatus.DECLARED_ONLY
    else:
        ftype = ftype_of(claim) if name == "quantization.label" else None
        same = (ftype.name if ftype else claim) == certain[0]
        status = ClaimStatus.CONFIRMED if same else ClaimStatus.CONTRADICTED
    return FieldReport(verdict=status, declared=claim, observed=list(values))


def overall(fields: Mapping[str, FieldReport], findings: Iterable[Finding]) -> ClaimStatus:
    """The status over all fields and findings; see `IdentityReport.verdict`."""
    statuses = {field.status for field in fields.values()}
    levels = {finding.level for finding in findings}
    if ClaimStatus.CONTRADICTED in statuses or Level.CONTRADICTION in levels:
        return ClaimStatus.CONTRADICTED
    claims = {
        name: field.status
        for name, field in fields.items()
        if field.declared is not None and not _is_name(name)
    }
    if any(
        status is ClaimStatus.CONFIRMED and name.startswith(_OF_THE_MODEL)
        for name, status in claims.items()
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
    quantization, template = model.quantization, model.chat_template
    files = {f"files.{name}": file for name, file in sorted(model.files.items())}

    def of_files(**named: Any) -> dict[str, Any]:
        return {
            f"{prefix}.{field}": getattr(file, field)
            for prefix, file in named.items()
            for field in _FILE_FIELDS
        }

    claims = {
        "alias": model.alias,
        **of_files(weights=model.weights),
        "quantization.label": quantization.label,
        "quantization.ftype": quantization.ftype,
        "quantization.tensor_types": quantization.tensor_types,
        "chat_template.file": template.file,
        "chat_template.sha256": template.sha256,
        "decision": True if model.decision else None,
        **{f"decision.{name}": getattr(model.decision, name, None) for name in DECISION_FIELDS},
        **of_files(**files),
        "context": model.context,
        "cache_type_k": model.cache_type_k,
        "cache_type_v": model.cache_type_v,
    }
    return {name: value for name, value in claims.items() if value is not None}


def _is_name(field: str) -> bool:
    """Whether a field only names or locates what it is about."""
    return field == "alias" or field.endswith((".file", ".path"))


def _same_name(field: str, claim: Any, value: Any) -> bool:
    """Whether two names are the same; paths are compared as absolute ones."""
    if not field.endswith(".path"):
        return bool(claim == value)
    path = Path(str(claim))
    with suppress(RuntimeError):  # ~somebody, who is not known here
        path = path.expanduser()
    return path.absolute() == Path(str(value))


def _findings(claims: Mapping[str, Any], observed: Observed) -> Iterator[Finding]:
    """What stands out beside the fields: names that say otherwise, templates that are missing."""
    ftype_field, template_field = "quantization.ftype", "chat_template.sha256"
    for field, claim in claims.items():
        values = observed.values.get(field, ())
        # A name proves nothing, and so another name disproves nothing.
        if (
            _is_name(field)
            and values
            and not any(_same_name(field, claim, v.value) for v in values)
        ):
            level = Level.WARNING if field == "alias" else Level.NOTE
            message = f"declared {claim}, found {values[0].value} ({values[0].source})"
            yield _finding(level, "other_name", field, message)
    yield from _alias_quantization(claims, observed)
    for value in observed.values.get(ftype_field, ()):
        if value.source is Source.SERVER_GUESS:
            message = f"the header has no file type; the server guesses {value.value}"
            yield _finding(Level.NOTE, "guessed_ftype", ftype_field, message)
    if observed.unknown:
        yield _finding(Level.NOTE, "decision_unknown", "decision", observed.unknown)
    # The server's template is not the file's: legitimate, and it changes what is measured.
    if observed.header is None:
        return
    template = observed.header.chat_template_sha256
    values = observed.values.get(template_field, ())
    served = [value.value for value in values if value.source is Source.SERVER_PROPS]
    if template is None and not observed.header.decision:
        fallback = "; the server renders its own fallback" if served else ""
        message = f"the weights' file has no chat template{fallback}"
        yield _finding(Level.NOTE, "no_template", template_field, message)
    elif template and served and served[0] != template:
        message = "the server renders another chat template than the one in the weights' file"
        yield _finding(Level.WARNING, "other_template", template_field, message)


def _alias_quantization(claims: Mapping[str, Any], observed: Observed) -> Iterator[Finding]:
    """A quantization in a name that is not the weights' own."""
    label = claims.get("quantization.label")
    of_label = ftype_of(str(label)) if label is not None else None
    claim = claims.get("quantization.ftype") or (of_label.name if of_label else None)
    header = observed.certain("quantization.ftype")
    truth = header or claim
    if truth is None:
        return
    names = [claims["alias"], *(value.value for value in observed.values.get("alias", ()))]
    for name in dict.fromkeys(map(str, names)):
        named = quantizations_in(name)
        if not named or any(truth in types for types in named):
            continue
        level = Level.WARNING
        words = " and ".join(" or ".join(sorted(types)) for types in named)
        rest = f"the weights are {header}" if header else f"{claim} is declared"
        if claim == truth:
            level, rest = Level.EXPLAINED, f"{rest}, as declared"
        elif claim is not None and any(claim in types for types in named):
            level = Level.CONTRADICTION
        yield _finding(level, "alias_quantization", "alias", f"{name!r} says {words}, {rest}")


def _finding(level: Level, code: str, field: str, message: str) -> Finding:
    return Finding(level=level, code=code, field=field, message=message)
