"""A short hash that says whether two runs measured the same thing."""

import hashlib
from collections.abc import Mapping
from typing import Any

from jevexp.core.identity import Fingerprint, IdentityReport
from jevexp.core.json import dumps, representable
from jevexp.identity.observed import DECISION_FIELDS, further_files

# Goes up with every change to what is hashed or how: old and new values never compare.
FINGERPRINT_VERSION = 1
_DIGITS = 16
_FACTS = ("quantization.ftype", "n_params", "tensor_bytes", "n_vocab")


def fingerprint(
    description: Mapping[str, Any], report: IdentityReport, concurrency: int = 1
) -> Fingerprint:
    """The fingerprint of what a backend measures.

    Equal for the same weights, files, template, context, cache types and readout on the same kind
    of backend, wherever that runs: port, host, path, alias and threads are no part of it. What is
    not observed is taken as declared, and what is neither is null.

    Args:
        description: the backend's `describe()`.
        report: what `reconcile` said about its model.
        concurrency: how many requests are under way at once. A server computes them together, which
            rounds another way; above 1 it is an input, so that values from before stay what they
            were.
    """
    # Without their hash, two servers with different weights must still differ: then what is claimed
    # and what the server says of them stands in, and for a provider that says nothing of them the
    # model that it names, or else the one that is asked for.
    sha256 = report.observed("weights.sha256")
    field = report.fields.get("weights.sha256")
    claimed = field.declared if field else None
    facts = {name: report.observed(name) for name in _FACTS}
    if sha256:
        weights = {"sha256": sha256}
    elif claimed is None and not any(facts.values()):
        weights = {"sha256": None, "model": report.known("alias")}
    else:
        weights = {"sha256": None, "declared_sha256": claimed, **facts}
    files = further_files(sorted(report.fields))
    inputs: dict[str, Any] = representable(
        {
            "backend": description.get("kind"),
            "weights": weights,
            "files": {name: report.known(f"files.{name}.sha256") for name in files},
            "chat_template_sha256": report.known("chat_template.sha256"),
            "context": report.known("context"),
            "cache_type_k": report.known("cache_type_k"),
            "cache_type_v": report.known("cache_type_v"),
            "readout": description.get("readout"),
            "prompt_version": description.get("prompt_version"),
            "template_kwargs": description.get("template_kwargs"),
        }
    )
    if report.known("decision") and _is_native(description):
        # Its own template renders the question; the ordinary one renders nothing.
        inputs["chat_template_sha256"] = None
        inputs["decision"] = {name: report.known(f"decision.{name}") for name in DECISION_FIELDS}
    if concurrency > 1:
        inputs["concurrency"] = concurrency
    digest = hashlib.sha256(dumps(inputs, sort_keys=True).encode()).hexdigest()
    value = f"jf{FINGERPRINT_VERSION}-{digest[:_DIGITS]}"
    return Fingerprint(version=FINGERPRINT_VERSION, value=value, inputs=inputs)


def _is_native(description: Mapping[str, Any]) -> bool:
    """Whether a decision model is asked at its own route."""
    readout = description.get("readout")
    route = readout.get("route") if isinstance(readout, dict) else None
    return description.get("kind") == "systemone" or route == "native"
