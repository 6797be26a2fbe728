"""Who answered: each claim about a model beside what was observed, as the manifest keeps it."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from jevexp.core.json import dumps


class ClaimStatus(StrEnum):
    """How a claim and what is observed go together."""

    CONFIRMED = "confirmed"
    """Declared, and observed to be so."""
    DECLARED_ONLY = "declared_only"
    """Declared; nothing was observed that tells."""
    OBSERVED_ONLY = "observed_only"
    """Observed; nothing is declared."""
    CONTRADICTED = "contradicted"
    """Observed to be otherwise, or the sources disagree with each other."""

    @property
    def words(self) -> str:
        """The status as it is printed."""
        return self.value.replace("_", " ")


class Source(StrEnum):
    """Where a value comes from; earlier ones are believed first."""

    FILE_BYTES = "file bytes"
    """The whole file was read, or its size was."""
    FILE_HEADER = "file header"
    """What the file says of itself."""
    FILE_PATH = "file path"
    """Where the file is."""
    SERVER_PROPS = "server /props"
    SERVER_MODELS = "server /v1/models"
    SERVER = "server"
    """One of the two; builds differ in which."""
    SERVER_GUESS = "server, guessed"
    """The header says nothing, and llama.cpp went by the tensors. Nothing is judged by it."""
    PROVIDER = "provider"
    """A provider that is no llama.cpp server says so."""
    CONFIG = "config"
    """The server was started here with this setting."""


class Level(StrEnum):
    """How much a finding matters."""

    NOTE = "note"
    """Worth knowing."""
    EXPLAINED = "explained"
    """Looks wrong, and the configuration says why it is not."""
    WARNING = "warning"
    """May be wrong; nothing was claimed that would tell."""
    CONTRADICTION = "contradiction"
    """Wrong."""


class _Part(BaseModel):
    """What a newer version has added is kept and not understood."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True, allow_inf_nan=False)


class ObservedValue(_Part):
    """One thing that one source says, as plain JSON."""

    value: Any
    source: Annotated[Source, Field(strict=False)]


class FieldReport(_Part):
    """One field: its status, the claim (null: none), what each source says, strongest first."""

    verdict: Annotated[ClaimStatus, Field(strict=False)]
    declared: Any
    observed: list[ObservedValue]

    @property
    def status(self) -> ClaimStatus:
        """The status of the claim; files call it `verdict`."""
        return self.verdict

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


class IdentityReport(_Part):
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

    verdict: Annotated[ClaimStatus, Field(strict=False)]
    fields: dict[str, FieldReport]
    findings: list[Finding]
    notes: list[str] = []
    bytes_hashed: int = 0
    bytes_read: int = 0

    @property
    def status(self) -> ClaimStatus:
        """The status over all fields and findings; files call it `verdict`."""
        return self.verdict

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
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return value if isinstance(value, str) else dumps(value)
