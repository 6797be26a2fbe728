"""The outcome of a reconciliation, for a manifest, a terminal table and an error."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from jevexp.core.json import dumps, representable
from jevexp.identity.findings import Finding, Level
from jevexp.identity.observed import Value


class Verdict(StrEnum):
    """How a claim and what is observed go together."""

    CONFIRMED = "confirmed"
    """Declared, and observed to be so."""
    DECLARED_ONLY = "declared_only"
    """Declared; nothing was observed that tells."""
    OBSERVED_ONLY = "observed_only"
    """Observed; nothing is declared."""
    CONTRADICTED = "contradicted"
    """Observed to be otherwise, or the sources disagree with each other."""


@dataclass(frozen=True, slots=True)
class FieldReport:
    """One field: its dotted name, the verdict, the claim (null: none), what each source says."""

    name: str
    verdict: Verdict
    declared: Any
    observed: tuple[Value, ...]

    def line(self) -> str:
        """The claim and what each source says, in one line."""
        said = [f"found {value} ({sources})" for value, sources in self.shown().items()]
        if self.declared is not None:
            said.insert(0, f"declared {shown(self.declared)}")
        return f"{self.name}: {', '.join(said)}"

    def shown(self) -> dict[str, str]:
        """Each value as text, and the sources that say it."""
        by_value: dict[str, list[str]] = {}
        for found in self.observed:
            by_value.setdefault(shown(found.value), []).append(found.source.value)
        return {value: ", ".join(sources) for value, sources in by_value.items()}


class Row(NamedTuple):
    """One line of a terminal table; several values of one field are separated by newlines."""

    field: str
    verdict: Verdict
    declared: str
    observed: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityReport:
    """Who answers, as far as it can be told.

    Attributes:
        verdict: contradicted where a field or a finding is; else confirmed where a claim about
            weights, quantization, template or files is; else declared only where anything but
            names is claimed; else observed only where anything is observed.
        notes: why something could not be observed.
        bytes_hashed: what the hashes cover.
        bytes_read: what of that was read now instead of remembered.
    """

    verdict: Verdict
    fields: tuple[FieldReport, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    bytes_hashed: int
    bytes_read: int

    @property
    def contradictions(self) -> tuple[FieldReport, ...]:
        """The fields that are contradicted."""
        return tuple(field for field in self.fields if field.verdict is Verdict.CONTRADICTED)

    def field(self, name: str) -> FieldReport | None:
        """The report on one field; None where it is neither declared nor observed."""
        return next((field for field in self.fields if field.name == name), None)

    def observed(self, name: str) -> Any:
        """What the strongest source says about a field; None where nobody does."""
        field = self.field(name)
        return field.observed[0].value if field and field.observed else None

    def reason(self) -> str | None:
        """Everything that is contradicted, in one line; None where nothing is."""
        if self.verdict is not Verdict.CONTRADICTED:
            return None
        lines = [f"model.{field.line()}" for field in self.contradictions]
        lines += [
            f"model.{finding.field}: {finding.message}"
            for finding in self.findings
            if finding.level is Level.CONTRADICTION
        ]
        return "; ".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON for the manifest: each field's claim, verdict, values and their sources."""
        whole: dict[str, Any] = representable(
            {
                "verdict": self.verdict.value,
                "fields": {
                    field.name: {
                        "verdict": field.verdict.value,
                        "declared": field.declared,
                        "observed": [
                            {"value": found.value, "source": found.source.value}
                            for found in field.observed
                        ],
                    }
                    for field in self.fields
                },
                "findings": [asdict(finding) for finding in self.findings],
                "notes": list(self.notes),
                "bytes_hashed": self.bytes_hashed,
                "bytes_read": self.bytes_read,
            }
        )
        return whole


def table_rows(section: Mapping[str, Any]) -> list[Row]:
    """A row a field, contradictions first, from the section that a manifest keeps."""
    ordered = sorted(
        section["fields"].items(),
        key=lambda named: named[1]["verdict"] != Verdict.CONTRADICTED.value,
    )
    return [_row(name, field) for name, field in ordered]


def _row(name: str, field: Mapping[str, Any]) -> Row:
    sources: dict[str, list[str]] = {}
    for found in field["observed"]:
        sources.setdefault(shown(found["value"]), []).append(found["source"])
    return Row(
        name,
        Verdict(field["verdict"]),
        "" if field["declared"] is None else shown(field["declared"]),
        "\n".join(sources),
        "\n".join(map(", ".join, sources.values())),
    )


def shown(value: Any) -> str:
    """A value in the words of the terminal."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return value if isinstance(value, str) else dumps(value)
