"""The composed configuration as one frozen, validated object.

Hydra and OmegaConf stop here: everything below reads these models. Every key is listed, an unknown
one is refused, and a secret appears only as the name of the environment variable that holds it.
"""

import difflib
import hashlib
import math
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from jevexp.domain.ftype import claimed_ftype
from jevexp.domain.json import dumps, representable
from jevexp.errors import InputError

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
EnvironmentVariable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# One path segment: what names are made of that become part of a directory's name.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]


class Model(BaseModel):
    """Base of all settings: frozen, unknown keys refused, numbers and texts never mixed up."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def of(cls, fields: Mapping[str, Any], *, at: str = "") -> Self:
        """Validate plain fields, as they were composed or stand in a file.

        Args:
            fields: plain JSON.
            at: where the fields stand in the whole configuration, for messages.

        Raises:
            InputError: naming the field, what was found and what is expected.
        """
        if fault := _unrepresentable(fields, at):
            raise InputError(fault)
        try:
            # Lists become tuples and integers become floats, as YAML means them; nothing else is
            # converted, so that a number in quotes is a mistake and not a number.
            return cls.model_validate_json(dumps(fields))
        except ValidationError as error:
            raise InputError(explain(error, at)) from error


class PinnedFile(Model):
    """One task file at its pin: `path` inside the repository, and what its bytes must be."""

    path: str
    sha256: Sha256
    bytes: Annotated[int, Field(gt=0)]
    tasks: Annotated[int, Field(gt=0)]


class Dataset(Model):
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


class WeightsPackage(Model):
    """A Python distribution that ships the weights, and how a person installs it."""

    name: str
    install: str


class WeightFile(Model):
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


class Quantization(Model):
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


class ChatTemplate(Model):
    """The claimed chat template: SHA-256 of its text, and the file that the text is kept in."""

    file: str | None = None
    sha256: Sha256 | None = None


class ModelIdentity(Model):
    """Who is asked: the alias that the provider is sent, and what is claimed to be behind it.

    `files` are further files such as a projector. `context` is one slot's, in tokens.
    """

    name: Name
    alias: Annotated[str, Field(min_length=1)]
    weights: Weights = Weights()
    quantization: Quantization = Quantization()
    chat_template: ChatTemplate = ChatTemplate()
    files: dict[str, WeightFile] = {}
    context: Annotated[int, Field(ge=64)] | None = None
    cache_type_k: CacheType | None = None
    cache_type_v: CacheType | None = None


class FakeBackend(Model):
    """An offline provider for tests and dry runs; it is told the answers it should give."""

    kind: Literal["fake"]
    name: Name
    mode: Literal["uniform", "script", "noise"]
    script: str | None
    accuracy: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    seed: int
    latency_s: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)]

    @model_validator(mode="after")
    def _script_given(self) -> Self:
        if (self.mode == "script") != (self.script is not None):
            raise ValueError("script: a file goes with mode=script, and only with it")
        return self


class LlamaServer(Model):
    """Where a llama.cpp server is, or how to start one.

    With `base_url` an existing server is used. Without it a server is started for `gguf`, else for
    the model's own weights; where the model has none here, the server at llama.cpp's default
    address is used.
    """

    base_url: Annotated[str, Field(pattern=r"^https?://")] | None
    gguf: str | None
    key_env: EnvironmentVariable | None
    context: Annotated[int, Field(ge=64)]
    threads: Annotated[int, Field(ge=1)] | None
    slots: Annotated[int, Field(ge=1)]
    cache_type_k: CacheType
    cache_type_v: CacheType
    gpu_layers: Annotated[int, Field(ge=-1)]
    start_timeout_s: Seconds

    @model_validator(mode="after")
    def _one_server(self) -> Self:
        if self.base_url and self.gguf:
            raise ValueError("gguf: base_url names a running server; give one of the two")
        if self.base_url and not _plain(self.base_url):
            # Not shown: what makes it wrong may be a password.
            raise ValueError(
                "base_url: expected http(s)://HOST[:PORT][/PATH] without user, query or fragment; "
                "an API key goes into the environment variable that key_env names"
            )
        return self


def _plain(url: str) -> bool:
    """Whether a URL names a host, and nothing beyond host, port and path."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises where the port is no number
    except ValueError:
        return False
    extras = (parts.username, parts.password, parts.query, parts.fragment)
    return bool(parts.hostname) and not any(extras) and "@" not in parts.netloc


class LlamaTemplate(Model):
    """How a question becomes a prompt: options for the server's own chat template."""

    kwargs: dict[str, Any]


class LlamaReadout(Model):
    """How the distribution is read; `bias` is added to every candidate's logit."""

    bias: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    extra_probs: Annotated[int, Field(ge=0, le=100)]


class LlamaCppBackend(Model):
    """Any GGUF model on any llama.cpp server, one next-token distribution a decision."""

    kind: Literal["llama_cpp"]
    name: Name
    server: LlamaServer
    template: LlamaTemplate
    readout: LlamaReadout
    connect_timeout_s: Seconds
    request_timeout_s: Seconds


Backend = Annotated[FakeBackend | LlamaCppBackend, Field(discriminator="kind")]


class Caps(Model):
    """What a run may spend. `ledger` null: inside the run or the sweep."""

    name: Name
    cap_usd: Usd
    reserve_usd: Usd
    limit: Annotated[int, Field(ge=1)] | None
    ledger: str | None
    reason: str | None

    @model_validator(mode="after")
    def _reason_given(self) -> Self:
        if self.reserve_usd == 0 and not self.reason:
            raise ValueError("reason: reserving nothing needs a reason, which the manifest keeps")
        return self


class Pricing(Model):
    """A route's list price in US dollars per million tokens; null means unknown."""

    name: Name
    input_per_m: Usd | None
    output_per_m: Usd | None
    basis: str | None
    source: str | None


class Harness(Model):
    """Which implementation of the benchmark's protocol runs the tasks."""

    name: Literal["native"]


class Tracking(Model):
    """Where finished runs are logged. `uri` null: an SQLite database under the outputs folder."""

    kind: Literal["mlflow", "none"]
    uri: str | None
    experiment: Annotated[str, Field(min_length=1, max_length=500)]
    raw_evidence: bool
    timeout_s: Seconds

    @model_validator(mode="after")
    def _store_without_password(self) -> Self:
        # What is wrong is not shown: it may hold a password, and the manifest shows every field.
        if self.uri is not None and not re.match(r"[a-z][a-z0-9+.-]*://.|databricks$", self.uri):
            raise ValueError(
                "uri: expected a server's http(s)://HOST[:PORT] or a database's URI, such as "
                "sqlite:////absolute/mlflow.db"
            )
        if self.uri and re.search(r"://[^/]*:[^/]*@|^https?://[^/]*@|password=", self.uri):
            raise ValueError(
                "uri: holds a password or a user; for a server set MLFLOW_TRACKING_USERNAME and "
                "MLFLOW_TRACKING_PASSWORD, for a database use its own password file"
            )
        return self


class Settings(Model):
    """One run, completely described."""

    dataset: Dataset
    backend: Backend
    model: ModelIdentity
    caps: Caps
    pricing: Pricing
    harness: Harness
    tracking: Tracking
    identity: Literal["strict", "record"]
    outputs: Annotated[str, Field(min_length=1)]

    def resolved(self) -> dict[str, Any]:
        """The configuration as plain JSON, every default filled in."""
        return self.model_dump(mode="json")

    @property
    def config_hash(self) -> str:
        """SHA-256 of the resolved configuration in canonical JSON."""
        return hashlib.sha256(dumps(self.resolved(), sort_keys=True).encode()).hexdigest()


def explain(error: ValidationError, at: str = "") -> str:
    """One line for the first thing that is wrong: field, finding, way out."""
    first = error.errors()[0]
    location = [*at.split("."), *map(str, first["loc"])] if at else [*map(str, first["loc"])]
    # A discriminated union adds its tag to the location; a person never typed it.
    if location[:1] == ["backend"]:
        del location[1:2]
    field = ".".join(location)
    if first["type"] == "extra_forbidden":
        return unknown_field(field)
    if first["type"] == "missing":
        return f"{field}: missing; set {field}=VALUE"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        # Our own validators begin with the field below the model they check.
        return f"{field}.{message}" if field else message
    return f"{field}: {message[0].lower()}{message[1:]}, found {first['input']!r}"


def unknown_field(field: str) -> str:
    """One line for a field that does not exist, with what does exist near it."""
    known = list(field_names(Settings))
    parent, _, leaf = field.rpartition(".")
    siblings = sorted({name.rpartition(".")[2] for name in known if _parent(name) == parent})
    if near := difflib.get_close_matches(leaf, siblings, n=1):
        return f"{field}: no such field; did you mean {parent}{'.' if parent else ''}{near[0]}?"
    if parent and siblings:
        return f"{field}: no such field; {parent} has {', '.join(siblings)}"
    if near := difflib.get_close_matches(field, known, n=1):
        return f"{field}: no such field; did you mean {near[0]}?"
    return f"{field}: no such field; see jevexp --cfg job for all fields"


def _parent(name: str) -> str:
    return name.rpartition(".")[0]


def field_names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every dotted field name below `model`, its groups included."""
    for name, field in model.model_fields.items():
        dotted = f"{prefix}{name}"
        yield dotted
        for part in _models_in(field.annotation):
            yield from field_names(part, f"{dotted}.")


def _models_in(annotation: Any) -> Iterable[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, Annotated):
        return [model for part in get_args(annotation) for model in _models_in(part)]
    return []


def _unrepresentable(value: Any, path: str) -> str | None:
    """Name the first value that JSON has no word for: NaN, an infinity, half a character."""
    if isinstance(value, Mapping):
        parts = [(f"{path}.{key}" if path else str(key), part) for key, part in value.items()]
    elif isinstance(value, list | tuple):
        parts = [(f"{path}[{index}]", part) for index, part in enumerate(value)]
    elif isinstance(value, float) and not math.isfinite(value):
        return f"{path}: expected a finite number, found {value}"
    elif isinstance(value, str) and representable(value) != value:
        return f"{path}: holds half of a surrogate pair, which is no character"
    else:
        return None
    return next(filter(None, (_unrepresentable(part, name) for name, part in parts)), None)
