"""What a llama.cpp server says of itself."""

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from jevexp.backends.transport import Failure, Transport

_MODEL_FACTS = ("ftype", "n_params", "size", "n_vocab", "n_ctx", "n_ctx_train", "n_embd")


def facts(
    transport: Transport, model: Mapping[str, Any], *, routed: str | None = None
) -> dict[str, Any]:
    """The session's facts from `/v1/models`, which is given, and `/props`, which is asked for.

    Builds differ in what they say: what is missing or makes no sense is null.

    Args:
        transport: the server.
        model: the entry of the model in the server's `/v1/models`.
        routed: the model's name at a router, which keeps facts by model.
    """
    meta = _object(model.get("meta"))
    try:
        props = transport.get(f"/props?model={quote(routed)}" if routed else "/props").body
    except Failure:
        props = {}
    settings = _object(props.get("default_generation_settings"))
    template = _text(props.get("chat_template"))
    found: dict[str, Any] = {name: _scalar(meta.get(name)) for name in _MODEL_FACTS}
    return found | {
        "build_info": _text(props.get("build_info")),
        "model": _text(model.get("id")),
        "model_alias": _text(props.get("model_alias")),
        "model_path": _text(props.get("model_path")),
        "ftype": _text(found["ftype"]) or _text(props.get("model_ftype")),
        # The context of one slot, which is what a prompt has.
        "n_ctx": _number(settings.get("n_ctx")) or _number(found["n_ctx"]),
        "total_slots": _number(props.get("total_slots")),
        "chat_template_sha256": (
            hashlib.sha256(template.encode()).hexdigest() if template is not None else None
        ),
        "modalities": _object(props.get("modalities")) or None,
    }


def listed_models(models: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The entries of a `/v1/models` answer that name a model."""
    data = models.get("data")
    entries = map(_object, data if isinstance(data, list) else [])
    return [entry for entry in entries if _text(entry.get("id"))]


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int | None:
    return value if type(value) is int else None


def _scalar(value: Any) -> str | int | None:
    return _text(value) if isinstance(value, str) else _number(value)
