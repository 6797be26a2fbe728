"""One run, completely described: its tasks, its model, what it may spend, how it is run."""

import hashlib
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from jevexp.core.ftype import claimed_ftype
from jevexp.core.json import dumps
from jevexp.settings.base import CacheType, EnvironmentVariable, FrozenSettings, Name, Sha256, Usd
from jevexp.settings.providers import AnyBackend
from jevexp.settings.trackers import Tracking
from jevexp.untrusted.addresses import check_database_address, holds_password

# The basis of a cost that the answer itself tells.
REPORTED_COST = "reported_by_provider"
DATABASES = ("sqlite:///", "postgresql://", "postgresql+psycopg://")

# The commit of github.com/fstandhartinger/jevbench whose protocol the harness follows. Its version
# strings disagree with each other, so nothing else names it.
PINNED_COMMIT = "bb05a335bc809e61b20c0f745d25499a82b326fc"


class PinnedFile(FrozenSettings):
    """One task file at its pin: `path` inside the repository, and what its bytes must be."""

    path: str
    sha256: Sha256
    bytes: Annotated[int, Field(gt=0)]
    tasks: Annotated[int, Field(gt=0)]


class Dataset(FrozenSettings):
    """Which tasks are put to the model. Exactly one source: pinned files, shipped ones, a path."""

    name: Name
    source: Literal["pinned", "shipped", "local"]
    title: str | None = None
    licence: str | None = None
    repository: str | None = None
    commit: str | None = None
    base_url: str | None = None
    files: tuple[PinnedFile, ...] = ()
    dataset_hash: Sha256 | None = None
    path: str | None = None
    sha256: Sha256 | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.source == "local" and not self.path:
            raise ValueError("path: missing; give dataset.path=FILE, a JSON Lines file of tasks")
        if self.source != "local" and self.sha256:
            raise ValueError("sha256: only dataset=local takes one; a pin has its own")
        return self


class WeightsPackage(FrozenSettings):
    """A Python distribution that ships the weights, and how a person installs it."""

    name: str
    install: str


class WeightFile(FrozenSettings):
    """One file of weights, as claimed. Null means: not claimed."""

    file: str | None = None
    path: str | None = None
    sha256: Sha256 | None = None
    bytes: Annotated[int, Field(gt=0)] | None = None
    repository: str | None = None
    revision: str | None = None


class Weights(WeightFile):
    """The model's main weights; `package` names a distribution that ships them."""

    package: WeightsPackage | None = None


class Quantization(FrozenSettings):
    """The claimed quantization: its usual name, the header's file type, how many tensors of each.

    `ftype` takes every spelling, and is kept as the name: "Q4_K_M" for 15 and "Q4_K - Medium".
    """

    label: str | None = None
    ftype: str | None = None
    tensor_types: dict[str, Annotated[int, Field(gt=0)]] | None = None
    note: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _ftype_by_name(cls, fields: Any) -> Any:
        spelling = fields.get("ftype") if isinstance(fields, dict) else None
        if not isinstance(spelling, str | int) or isinstance(spelling, bool):
            return fields
        try:
            return fields | {"ftype": claimed_ftype(spelling)}
        except ValueError as error:
            raise ValueError(f"ftype: {error}") from error


class ChatTemplate(FrozenSettings):
    """The claimed chat template: SHA-256 of its text, and the file that the text is kept in."""

    file: str | None = None
    sha256: Sha256 | None = None


class DecisionModel(FrozenSettings):
    """The claim that it is a decision model, and what in it decides how a question is answered.

    `temperatures` are by what they are for, such as "choice" or "score.3_5"; `template_sha256` is
    that of the template which renders a question; `settings` are the header's further keys.
    """

    type: str | None = None
    temperatures: dict[str, Annotated[float, Field(allow_inf_nan=False)]] | None = None
    template_sha256: Sha256 | None = None
    settings: dict[str, bool | int | float | str] | None = None


class ModelIdentity(FrozenSettings):
    """Who is asked: the alias that the provider is sent, and what is claimed to be behind it.

    `files` are further files such as a projector. `context` is one slot's, in tokens. `decision`
    null: nothing is claimed of decisions; runs from before it do not have it.
    """

    name: Name
    alias: Annotated[str, Field(min_length=1)]
    weights: Weights = Weights()
    quantization: Quantization = Quantization()
    chat_template: ChatTemplate = ChatTemplate()
    decision: DecisionModel | None = None
    files: dict[str, WeightFile] = Field(default_factory=dict)
    context: Annotated[int, Field(ge=64)] | None = None
    cache_type_k: CacheType | None = None
    cache_type_v: CacheType | None = None

    @model_serializer(mode="wrap")
    def _as_before_without_decision(self, fields_of: SerializerFunctionWrapHandler) -> Any:
        """Where no decision is claimed, as it was before: hashes stay the same."""
        return {k: v for k, v in fields_of(self).items() if k != "decision" or v is not None}


class Caps(FrozenSettings):
    """What a run may spend. `ledger` and `ledger_url` null: inside the run or the sweep."""

    name: Name
    cap_usd: Usd
    reserve_usd: Usd
    limit: Annotated[int, Field(ge=1)] | None
    ledger: str | None
    ledger_on_network: bool
    ledger_url: str | None
    ledger_password_env: EnvironmentVariable | None
    reason: str | None

    @model_validator(mode="after")
    def _reason_given_and_one_ledger(self) -> Self:
        if self.reserve_usd == 0 and not self.reason:
            raise ValueError("reason: reserving nothing needs a reason, which the manifest keeps")
        if self.ledger_url is None:
            if self.ledger_password_env is not None:
                raise ValueError("ledger_password_env: only ledger_url takes a password")
            return self
        if self.ledger is not None:
            raise ValueError("ledger_url: give either a file, ledger, or a database, ledger_url")
        check_ledger_url(self.ledger_url)
        if self.ledger_password_env is not None:
            check_database_address(
                self.ledger_url, field="ledger_url", login_field="ledger_password_env"
            )
        return self


def check_ledger_url(url: str) -> None:
    """Refuse an address that is malformed, or that holds a password.

    Raises ValueError: the message begins with `ledger_url` and does not show the address, since
    what makes it wrong may be a password.
    """
    if holds_password(url):
        raise ValueError(
            "ledger_url: holds a password, which would get into files; give the name of an "
            "environment variable that holds it in ledger_password_env"
        )
    parts = urlsplit(url)
    named = parts.path.strip("/") and not parts.path.startswith("/:memory:")
    if not url.startswith(DATABASES) or not named:
        raise ValueError(
            "ledger_url: expected sqlite:///FILE or postgresql://[USER@]HOST[:PORT]/DATABASE"
        )
    if url.startswith("sqlite") and "?" in url:
        # mode=memory would forget what was spent, nolock=1 let everybody spend at once.
        raise ValueError("ledger_url: sqlite:///FILE takes no parameters; leave ?… out")


class Pricing(FrozenSettings):
    """A route's list price in US dollars per million tokens; null means unknown.

    With the basis `reported_by_provider` a decision costs what its answer says.
    """

    name: Name
    input_per_m: Usd | None
    output_per_m: Usd | None
    basis: str | None
    source: str | None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.basis == REPORTED_COST and (self.input_per_m, self.output_per_m) != (None, None):
            raise ValueError(f"basis: {REPORTED_COST} goes with no price; set both prices to null")
        return self


class Runner(FrozenSettings):
    """How the tasks are put to the provider: `concurrency` requests are under way at once."""

    concurrency: Annotated[int, Field(ge=1, le=1024)]


class Harness(FrozenSettings):
    """Which implementation of the benchmark's protocol runs the tasks.

    `path` is a git checkout that holds the pinned one; null: the installed package.
    """

    name: Literal["native", "upstream"]
    path: str | None

    @model_validator(mode="after")
    def _path_of_upstream(self) -> Self:
        if self.name == "native" and self.path is not None:
            raise ValueError("path: only harness=upstream takes one")
        return self


class Settings(FrozenSettings):
    """One run, completely described."""

    dataset: Dataset
    backend: AnyBackend
    model: ModelIdentity
    caps: Caps
    pricing: Pricing
    harness: Harness
    runner: Runner
    tracking: Tracking
    identity: Literal["strict", "record"]
    outputs: Annotated[str, Field(min_length=1)]
    # Runs from before it do not have this field.
    group_access: bool = False

    @model_validator(mode="after")
    def _groups_fit_together(self) -> Self:
        if self.backend.costs_nothing and (self.pricing.input_per_m or self.pricing.output_per_m):
            raise ValueError(
                f"pricing: a {self.backend.kind} costs nothing; use pricing=unknown or "
                "pricing=local"
            )
        if self.harness.name == "upstream" and self.caps.ledger_url is not None:
            raise ValueError(
                "caps.ledger_url: the pinned harness keeps its ledger in a file; set caps.ledger, "
                "or harness=native"
            )
        return self

    def resolved(self) -> dict[str, Any]:
        """The configuration as plain JSON, every default filled in."""
        fields = self.model_dump(mode="json")
        if not fields["tracking"].get("also"):
            # As it was before there was more than MLflow: the hash stays the same.
            fields["tracking"].pop("also", None)
        return fields

    @property
    def config_hash(self) -> str:
        """SHA-256 of the resolved configuration in canonical JSON."""
        return config_hash(self.resolved())


def config_hash(resolved: dict[str, Any]) -> str:
    """SHA-256 of a resolved configuration, also of an older version's, in canonical JSON."""
    return hashlib.sha256(dumps(resolved, sort_keys=True).encode()).hexdigest()
