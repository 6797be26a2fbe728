"""What a llama.cpp server says of the model that it serves, at `/v1/models` and `/props`."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from jevexp.backends.transport import Failure, Transport, name_or_none
from jevexp.errors import InputError

_MOST_NAMES = 20
_MODEL_FACTS = ("ftype", "n_params", "size", "n_vocab", "n_ctx", "n_ctx_train", "n_embd")


def listed_models(models: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The entries of a `/v1/models` answer that name a model."""
    data = models.get("data")
    entries = map(_object, data if isinstance(data, list) else [])
    return [entry for entry in entries if name_or_none(entry.get("id"))]


def choose(listed: Sequence[Mapping[str, Any]], alias: str, url: str) -> Mapping[str, Any]:
    """The entry that will answer: a server's only one, or at a router the one that is asked for.

    Raises InputError where a router has no model of that name.
    """
    if len(listed) == 1:
        return listed[0]
    by_name = {entry["id"]: entry for entry in listed}
    if alias in by_name:
        return by_name[alias]
    names = sorted(by_name)
    raise InputError(
        f"model.alias: {url} serves no {alias!r}; choose one of: {', '.join(names[:_MOST_NAMES])}"
        f"{', …' if len(names) > _MOST_NAMES else ''}"
    )


def facts(
    transport: Transport, model: Mapping[str, Any], route: Mapping[str, str]
) -> dict[str, Any]:
    """The server's facts from its entry in `/v1/models`, and from `/props`, which is asked for.

    Builds differ in what they say: what is missing or makes no sense is null.
    """
    meta = _object(model.get("meta"))
    try:
        path = f"/props?model={quote(route['model'])}" if route else "/props"
        props = transport.get(path).body
    except Failure:
        props = {}
    settings = _object(props.get("default_generation_settings"))
    template = name_or_none(props.get("chat_template"))
    outputs = _object(model.get("architecture")).get("output_modalities")
    known = {name: value for name, value in meta.items() if type(value) in (str, int)}
    return {name: known.get(name) for name in _MODEL_FACTS} | {
        "build_info": name_or_none(props.get("build_info")),
        "model": name_or_none(model.get("id")),
        "model_alias": name_or_none(props.get("model_alias")),
        "model_path": name_or_none(props.get("model_path")),
        "ftype": name_or_none(meta.get("ftype")) or name_or_none(props.get("model_ftype")),
        # The context of one slot, which is what a prompt has.
        "n_ctx": _number(settings.get("n_ctx")) or _number(meta.get("n_ctx")),
        "total_slots": _number(props.get("total_slots")),
        "chat_template_sha256": (
            hashlib.sha256(template.encode()).hexdigest() if template is not None else None
        ),
        "modalities": _object(props.get("modalities")) or None,
        # A decision model has "decisions" among them; older builds do not say.
        "output_modalities": outputs if isinstance(outputs, list) else None,
    }


def observed_at(transport: Transport, models: Mapping[str, Any], alias: str) -> dict[str, Any]:
    """The facts of a service that answers `/v1/models` with `models`, if that is llama.cpp's.

    Nothing of any other service, whose `/props` is not asked for, nor of a router that serves no
    model of that name.
    """
    listed = [entry for entry in listed_models(models) if entry.get("owned_by") == "llamacpp"]
    named = [entry for entry in listed if len(listed) == 1 or entry["id"] == alias]
    if not named:
        return {}
    server_facts = facts(transport, named[0], {"model": alias} if len(listed) > 1 else {})
    return server_facts | {"served_by": "llama.cpp"} if server_facts["total_slots"] else {}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    return value if type(value) is int else None
