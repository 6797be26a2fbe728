"""Who answered: each claim about a model beside what was observed, as the manifest keeps it."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from jevexp.core.json import dumps


class ClaimStatus(StrEnum):
    """How a claim and what is observed go together."""

    CONFIRMED = "confirmed"  # declared, and observed to be so
    DECLARED_ONLY = "declared_only"  # nothing was observed that tells
    OBSERVED_ONLY = "observed_only"  # nothing is declared
    CONTRADICTED = "contradicted"  # observed to be otherwise, or the sources disagree

    @property
    def words(self) -> str:
        """The status as it is printed."""
        return self.value.replace("_", " ")


class Source(StrEnum):
    """Where a value comes from; earlier ones are believed first."""

    FILE_BYTES = "file bytes"  # the whole file was read, or its size was
    FILE_HEADER = "file header"
    FILE_PATH = "file path"
    SERVER_PROPS = "server /props"
    SERVER_MODELS = "server /v1/models"
    SERVER = "server"  # one of the two; builds differ in which
    # The header says nothing, and llama.cpp went by the tensors. Nothing is judged by it.
    SERVER_GUESS = "server, guessed"
    PROVIDER = "provider"  # one that is no llama.cpp server
    CONFIG = "config"  # the server was started here with this setting


class Level(StrEnum):
    """How much a finding matters."""

    NOTE = "note"  # worth knowing
    EXPLAINED = "explained"  # looks wrong, and the configuration says why it is not
    WARNING = "warning"  # may be wrong; nothing was claimed that would tell
    CONTRADICTION = "contradiction"  # wrong


class _Part(BaseModel):
    """Keeps what a newer version has added."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)


class ObservedValue(_Part):
    """One thing that one source says, as plain JSON."""

    value: Any
    source: Annotated[Source, Field(strict=False)]


class _Judged(_Part):
    verdict: Annotated[ClaimStatus, Field(strict=False)]

    @property
    def status(self) -> ClaimStatus:
        """The status; files call it `verdict`."""
        return self.verdict


class FieldReport(_Judged):
    """One field: its status, the claim (null: none), what each source says, strongest first."""

    declared: Any
    observed: list[ObservedValue]

    @property
    def strongest(self) -> Any:
        """What the strongest source says; None where nobody says anything."""
        return self.observed[0].value if self.observed else None

    def in_words(self) -> str:
        """The claim and what each source says, in one line."""
        parts = [f"found {value} ({sources})" for value, sources in self.sources().items()]
        if self.declared is not None:
            parts.insert(0, f"declared {in_words(self.declared)}")
        return ", ".join(parts)

    def sources(self) -> dict[str, str]:
        """Each observed value in words, with the sources that say it."""
        by_value: dict[str, list[str]] = {}
        for observed in self.observed:
            by_value.setdefault(in_words(observed.value), []).append(observed.source.value)
        return {value: ", ".join(sources) for value, sources in by_value.items()}


class Finding(_Part):
    """One line about `field`; `code` is the same for every finding of its kind."""

    level: Annotated[Level, Field(strict=False)]
    code: str
    field: str
    message: str


class IdentityReport(_Judged):
    """Who answers, as far as it can be told.

    Attributes:
        verdict: contradicted where a field or a finding is; else confirmed where a claim about
            weights, quantization, template or files is; else declared only where anything but
            names is claimed; else observed only where anything is observed.
        fields: by dotted name, such as `weights.sha256`.
        findings: what stands out beside the fields.
        notes: why something could not be observed.
        bytes_hashed: what the hashes cover.
        bytes_read: what of that was read now instead of remembered.
    """

    fields: dict[str, FieldReport]
    findings: list[Finding]
    notes: list[str] = []
    bytes_hashed: int = 0
    bytes_read: int = 0

    @property
    def contradictions(self) -> dict[str, FieldReport]:
        """The fields that are contradicted, by name."""
        return {
            name: field
            for name, field in self.fields.items()
            if field.status is ClaimStatus.CONTRADICTED
        }

    def observed(self, name: str) -> Any:
        """What the strongest source says about a field; None where nobody does."""
        field = self.fields.get(name)
        return field.strongest if field else None

    def known(self, name: str) -> Any:
        """What is observed of a field, else what is declared, else None."""
        field = self.fields.get(name)
        if field is None:
            return None
        return field.strongest if field.observed else field.declared

    def reason(self) -> str | None:
        """Everything that is contradicted, in one line; None where nothing is."""
        if self.status is not ClaimStatus.CONTRADICTED:
            return None
        lines = [f"model.{name}: {field.in_words()}" for name, field in self.contradictions.items()]
        lines += [
            f"model.{finding.field}: {finding.message}"
            for finding in self.findings
            if finding.level is Level.CONTRADICTION
        ]
        return "; ".join(lines)


class Fingerprint(BaseModel):
    """The short hash of what was measured, its version, and what was hashed as plain JSON."""

    model_config = ConfigDict(frozen=True, extra="allow")

    version: int
    value: str
    inputs: dict[str, Any]


def in_words(value: Any) -> str:
    """A claimed or observed value as it is printed."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items()) or "none"
    return value if isinstance(value, str) else dumps(value)
