"""What a resumed run takes from the earlier run's manifest, and what the person says again.

A run directory may be a stranger's, and its manifest holds a whole configuration. Whatever in it
names code, a program, a folder or file that a program is given, an address, a place that is written
to, or the environment variable whose value is sent somewhere as a key, is not taken over: the
person repeats it. This is the one list. A test finds every field of the settings that it misses.
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
# line of its own with that kind.
ORIGINS: Mapping[str, Origin] = {
    "dataset.name": Origin.MEASURED,
    "dataset.source": Origin.MEASURED,
    "dataset.title": Origin.MEASURED,
    "dataset.licence": Origin.MEASURED,
    "dataset.repository": Origin.MEASURED,
    "dataset.commit": Origin.MEASURED,
    "dataset.base_url": Origin.CODE,
    "dataset.files.*.path": Origin.MEASURED,
    "dataset.files.*.sha256": Origin.MEASURED,
    "dataset.files.*.bytes": Origin.MEASURED,
    "dataset.files.*.tasks": Origin.MEASURED,
    "dataset.dataset_hash": Origin.MEASURED,
    "dataset.path": Origin.CHANGEABLE,
    "dataset.sha256": Origin.MEASURED,
    "backend.kind": Origin.MEASURED,
    "backend.name": Origin.MEASURED,
    "backend.factory": Origin.CODE,
    # What somebody's code does with its arguments nobody knows.
    "python:backend.options": Origin.CODE,
    "backend.base_url": Origin.PLACE,
    "backend.key_env": Origin.PLACE,
    "backend.header_env": Origin.PLACE,
    "backend.allow_http": Origin.PLACE,
    "backend.connect_timeout_s": Origin.CHANGEABLE,
    "backend.request_timeout_s": Origin.CHANGEABLE,
    "backend.timeout_s": Origin.CHANGEABLE,
    "backend.server.command": Origin.CODE,
    "backend.server.api_key_env": Origin.CODE,
    "backend.server.base_url": Origin.PLACE,
    "backend.server.gguf": Origin.PLACE,
    "backend.server.key_env": Origin.PLACE,
    "backend.server.allow_http": Origin.PLACE,
    "backend.server.start_timeout_s": Origin.CHANGEABLE,
    "backend.server.context": Origin.MEASURED,
    "backend.server.threads": Origin.MEASURED,
    "backend.server.slots": Origin.MEASURED,
    "backend.server.cache_type_k": Origin.MEASURED,
    "backend.server.cache_type_v": Origin.MEASURED,
    "backend.server.gpu_layers": Origin.MEASURED,
    "backend.template.kwargs": Origin.MEASURED,
    "backend.readout.bias": Origin.MEASURED,
    "backend.readout.extra_probs": Origin.MEASURED,
    "backend.readout.top_logprobs": Origin.MEASURED,
    "backend.route": Origin.MEASURED,
    "backend.max_tokens": Origin.MEASURED,
    # Fields of the request to the server that the person named.
    "backend.options": Origin.MEASURED,
    "backend.remove": Origin.MEASURED,
    "backend.mode": Origin.MEASURED,
    "backend.script": Origin.MEASURED,
    "backend.accuracy": Origin.MEASURED,
    "backend.seed": Origin.MEASURED,
    "backend.latency_s": Origin.MEASURED,
    "backend.provider": Origin.MEASURED,
    "backend.typevet.backend": Origin.MEASURED,
    "backend.typevet.framing": Origin.MEASURED,
    "backend.typevet.distributions": Origin.MEASURED,
    "backend.run": Origin.MEASURED,
    "backend.answers": Origin.MEASURED,
    "model.name": Origin.MEASURED,
    "model.alias": Origin.MEASURED,
    "model.weights.file": Origin.MEASURED,
    # A server is started with it.
    "model.weights.path": Origin.PLACE,
    "model.weights.sha256": Origin.MEASURED,
    "model.weights.bytes": Origin.MEASURED,
    "model.weights.repository": Origin.MEASURED,
    "model.weights.revision": Origin.MEASURED,
    # Files of an installed package, of which no code is run.
    "model.weights.package.name": Origin.MEASURED,
    "model.weights.package.install": Origin.MEASURED,
    "model.quantization.label": Origin.MEASURED,
    "model.quantization.ftype": Origin.MEASURED,
    "model.quantization.tensor_types": Origin.MEASURED,
    "model.quantization.note": Origin.MEASURED,
    "model.chat_template.file": Origin.MEASURED,
    "model.chat_template.sha256": Origin.MEASURED,
    # What is claimed of further files; none of them is opened.
    "model.files.*.file": Origin.MEASURED,
    "model.files.*.path": Origin.MEASURED,
    "model.files.*.sha256": Origin.MEASURED,
    "model.files.*.bytes": Origin.MEASURED,
    "model.files.*.repository": Origin.MEASURED,
    "model.files.*.revision": Origin.MEASURED,
    "model.context": Origin.MEASURED,
    "model.cache_type_k": Origin.MEASURED,
    "model.cache_type_v": Origin.MEASURED,
    "caps.name": Origin.CHANGEABLE,
    "caps.cap_usd": Origin.CHANGEABLE,
    "caps.reserve_usd": Origin.CHANGEABLE,
    "caps.limit": Origin.MEASURED,
    "caps.ledger": Origin.PLACE,
    "caps.ledger_on_network": Origin.CHANGEABLE,
    "caps.ledger_url": Origin.PLACE,
    "caps.ledger_password_env": Origin.PLACE,
    "caps.reason": Origin.CHANGEABLE,
    "pricing.name": Origin.MEASURED,
    "pricing.input_per_m": Origin.MEASURED,
    "pricing.output_per_m": Origin.MEASURED,
    "pricing.basis": Origin.MEASURED,
    "pricing.source": Origin.MEASURED,
    "harness.name": Origin.MEASURED,
    "harness.path": Origin.PLACE,
    "runner.concurrency": Origin.MEASURED,
    "tracking.kind": Origin.CHANGEABLE,
    "tracking.uri": Origin.PLACE,
    "tracking.experiment": Origin.CHANGEABLE,
    "tracking.raw_evidence": Origin.CHANGEABLE,
    "tracking.report": Origin.CHANGEABLE,
    "tracking.traces": Origin.CHANGEABLE,
    "tracking.timeout_s": Origin.CHANGEABLE,
    "tracking.token_env": Origin.PLACE,
    "tracking.username_env": Origin.PLACE,
    "tracking.password_env": Origin.PLACE,
    "tracking.allow_http": Origin.PLACE,
    "tracking.also": Origin.PLACE,
    "identity": Origin.MEASURED,
    # Whom the earlier run's owner trusted is for whoever resumes it to say.
    "group_access": Origin.PLACE,
    "outputs": Origin.PLACE,
}

FIELDS = tuple(dict.fromkeys(key.rpartition(":")[2] for key in ORIGINS))

# Where jevexp's own configuration names a place, its name is nothing that a stranger chose.
OWN_VALUES: Mapping[str, Any] = {
    "dataset.base_url": "https://raw.githubusercontent.com",
    "outputs": "outputs",
}


def origin_of(name: str, kind: str) -> Origin | None:
    """Where a field's value comes from; None where the list has no such field.

    Args:
        name: the field, dotted.
        kind: of the backend.
    """
    return ORIGINS.get(f"{kind}:{name}") or ORIGINS.get(name)


def to_repeat(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of a resolved configuration that a person repeats, with their values.

    Those are left out that name nothing: null, false, an empty list or dictionary, or what jevexp
    itself would take.
    """
    kind = str(field_of(fields, "backend.kind"))
    for name in FIELDS:
        origin = origin_of(name, kind)
        value = field_of(fields, name)
        if origin and origin.repeated and not _names_nothing(name, value):
            yield name, value


def _names_nothing(name: str, value: Any) -> bool:
    # An empty text is a path: the current folder.
    return value is None or value is False or value in ([], {}, OWN_VALUES.get(name))


def field_of(fields: Mapping[str, Any], name: str) -> Any:
    """The value of a dotted field; None where the configuration has no such field."""
    value: Any = fields
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
