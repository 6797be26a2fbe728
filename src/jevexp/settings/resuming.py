"""What a resumed run takes from the earlier run's manifest, and what the person says again.

A run directory may be a stranger's, and its manifest holds a whole configuration. The person
repeats whatever in it names code, a program, a folder or file that a program is given, an address,
a place that is written to, or the environment variable whose value is sent somewhere as a key.
This is the one list; a test finds every field of the settings that it misses.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any


class Origin(Enum):
    """Where the value of a resumed run's field comes from."""

    # From the manifest alone: it decides what is asked, or what an answer means.
    MEASURED = "measured"
    # From the manifest, or another one from the command line.
    CHANGEABLE = "changeable"
    # From the command line alone: the manifest's value, or another one. The fingerprint says
    # whether the same model is behind it.
    PLACE = "place"
    # From the command line alone, and the manifest's value: another one is another model.
    CODE = "code"

    @property
    def repeated(self) -> bool:
        """Whether the manifest's value counts only when a person repeats it."""
        return self in (Origin.PLACE, Origin.CODE)


# A star is any name or number. A field that means something else for one kind of backend has a
# name of its own with that kind.
FIELDS_BY_ORIGIN: Mapping[Origin, tuple[str, ...]] = {
    # What code does with its arguments (`python:backend.options`) nobody knows.
    Origin.CODE: (
        "dataset.base_url",
        "backend.factory", "python:backend.options", "backend.server.command",
        "backend.server.api_key_env",
    ),
    # A server is started with `model.weights.path`. Whom the earlier run's owner trusted
    # (`group_access`) is for whoever resumes it to say.
    Origin.PLACE: (
        "backend.base_url", "backend.path", "backend.key_env", "backend.header_env",
        "backend.allow_http", "backend.server.base_url", "backend.server.gguf",
        "backend.server.key_env", "backend.server.allow_http",
        "model.weights.path",
        "caps.ledger", "caps.ledger_url", "caps.ledger_password_env",
        "harness.path",
        "tracking.uri", "tracking.token_env", "tracking.username_env", "tracking.password_env",
        "tracking.allow_http", "tracking.also",
        "group_access", "outputs",
    ),
    Origin.CHANGEABLE: (
        "dataset.path",
        "backend.connect_timeout_s", "backend.request_timeout_s", "backend.timeout_s",
        "backend.server.start_timeout_s",
        "caps.name", "caps.cap_usd", "caps.reserve_usd", "caps.ledger_on_network", "caps.reason",
        "tracking.kind", "tracking.experiment", "tracking.raw_evidence", "tracking.report",
        "tracking.traces", "tracking.timeout_s",
    ),
    # `backend.options` are fields of the request to the server that the person named. No code of
    # `model.weights.package` is run, and none of `model.files` is opened.
    Origin.MEASURED: (
        "dataset.name", "dataset.source", "dataset.title", "dataset.licence", "dataset.repository",
        "dataset.commit", "dataset.files.*.path", "dataset.files.*.sha256", "dataset.files.*.bytes",
        "dataset.files.*.tasks", "dataset.dataset_hash", "dataset.sha256",
        "backend.kind", "backend.name", "backend.server.context", "backend.server.threads",
        "backend.server.slots", "backend.server.cache_type_k", "backend.server.cache_type_v",
        "backend.server.gpu_layers", "backend.template.kwargs", "backend.readout.bias",
        "backend.readout.extra_probs", "backend.readout.route", "backend.readout.top_logprobs",
        "backend.isolation", "backend.envelope", "backend.route",
        "backend.max_tokens", "backend.options", "backend.remove", "backend.mode", "backend.script",
        "backend.accuracy", "backend.seed", "backend.latency_s", "backend.provider",
        "backend.typevet.backend", "backend.typevet.framing", "backend.typevet.distributions",
        "backend.run", "backend.answers",
        "model.name", "model.alias", "model.weights.file", "model.weights.sha256",
        "model.weights.bytes", "model.weights.repository", "model.weights.revision",
        "model.weights.package.name", "model.weights.package.install", "model.quantization.label",
        "model.quantization.ftype", "model.quantization.tensor_types", "model.quantization.note",
        "model.chat_template.file", "model.chat_template.sha256", "model.decision.type",
        "model.decision.temperatures", "model.decision.template_sha256", "model.decision.settings",
        "model.files.*.file",
        "model.files.*.path", "model.files.*.sha256", "model.files.*.bytes",
        "model.files.*.repository", "model.files.*.revision", "model.context", "model.cache_type_k",
        "model.cache_type_v",
        "caps.limit",
        "pricing.name", "pricing.input_per_m", "pricing.output_per_m", "pricing.basis",
        "pricing.source",
        "harness.name", "runner.concurrency", "identity",
    ),
}  # fmt: skip
ORIGINS = {name: origin for origin, names in FIELDS_BY_ORIGIN.items() for name in names}

FIELDS = tuple(dict.fromkeys(key.rpartition(":")[2] for key in ORIGINS))

# Where jevexp's own configuration names a place, its name is nothing that a stranger chose.
OWN_VALUES: Mapping[str, tuple[str, ...]] = {
    "dataset.base_url": ("https://raw.githubusercontent.com",),
    "backend.path": ("/v1/systemone", "/v1/decisions"),
    "outputs": ("outputs",),
}


def origin_of(name: str, kind: str) -> Origin | None:
    """Where a dotted field's value comes from for a backend `kind`; None for an unknown field."""
    return ORIGINS.get(f"{kind}:{name}") or ORIGINS.get(name)


def to_repeat(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of a resolved configuration that a person repeats, with their values.

    Fields that name nothing are left out: null, false, an empty list or dictionary, or the value
    of jevexp's own configuration.
    """
    kind = str(field_of(fields, "backend.kind"))
    for name in FIELDS:
        origin = origin_of(name, kind)
        value = field_of(fields, name)
        # An empty text is a path: the current folder.
        nothing = value is None or value is False or value in ([], {}, *OWN_VALUES.get(name, ()))
        if origin and origin.repeated and not nothing:
            yield name, value


def field_of(fields: Mapping[str, Any], name: str) -> Any:
    """The value of a dotted field; None where the configuration has no such field."""
    value: Any = fields
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
