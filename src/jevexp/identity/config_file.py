"""A ready option of the `model` group that declares everything that was observed."""

import re
from typing import Any, get_args

import yaml  # type: ignore[import-untyped]

from jevexp.identity.observed import DECISION_FIELDS, Observed, further_files
from jevexp.settings import CacheType

_EXTENSION = re.compile(r"(-\d{5}-of-\d{5})?\.gguf$", re.IGNORECASE)
# What a claim may be; see jevexp.settings.ModelIdentity.
_LEAST_CONTEXT = 64
_FILE_FIELDS = ("file", "path", "sha256", "bytes")


def model_config(observed: Observed, name: str) -> str:
    """The YAML text of conf/model/`name`.yaml.

    Composed and reconciled with the same observations, it is confirmed.

    Args:
        observed: of a file or of a server.
        name: what the option is called, as `jevexp.settings.base.Name` allows it.
    """
    title = observed.header.name if observed.header else None
    file, context = observed.value("weights.file"), observed.value("context")
    ftype = observed.certain("quantization.ftype")
    caches = {field: observed.value(field) for field in ("cache_type_k", "cache_type_v")}
    further = further_files(observed.values)
    files = {name: _file(observed, f"files.{name}", read_here=True) for name in further}
    decides = bool(observed.value("decision"))
    decision = {name: observed.value(f"decision.{name}") for name in DECISION_FIELDS}
    option = {
        "defaults": ["unclaimed"],
        "name": name,
        # What a server calls the model, else the file's name without its extension.
        "alias": observed.value("alias") or _EXTENSION.sub("", file or name),
        "weights": _file(observed, "weights", read_here=observed.header is not None)
        | {"repository": None, "revision": None},
        "quantization": {
            "label": ftype,
            "ftype": ftype,
            "tensor_types": observed.value("quantization.tensor_types"),
        },
        "chat_template": {"sha256": None if decides else observed.value("chat_template.sha256")},
        **({"decision": decision} if decides else {}),
        **({"files": files} if files else {}),
        "context": context if context and context >= _LEAST_CONTEXT else None,
        **{field: kind if kind in get_args(CacheType) else None for field, kind in caches.items()},
    }
    text: str = yaml.dump(
        _quoted(option), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000
    )
    heading = str(title or observed.value("alias") or name)
    comment = "".join(c if c.isprintable() else " " for c in heading)[:90]
    return (
        f"# {comment}\n"
        "# What was observed, as a claim that is checked before every run. Set to null what does\n"
        "# not belong to your claim, and fill in where the weights were published.\n"
    ) + text


def _file(observed: Observed, prefix: str, *, read_here: bool) -> dict[str, Any]:
    """One file's claims; a server's path is of no use on another machine."""
    claims = {field: observed.value(f"{prefix}.{field}") for field in _FILE_FIELDS}
    return claims if read_here else claims | {"path": None}


def _quoted(value: Any) -> Any:
    """The value with its texts in quotes, so that YAML and OmegaConf read them back as they are."""
    # OmegaConf would look up what stands in ${...}; a backslash, itself doubled, prevents that. Its
    # own `to_yaml` leaves out quotes, and then a next line character (U+0085) comes back as
    # another.
    if isinstance(value, dict):
        return {key: _quoted(part) for key, part in value.items()}
    if isinstance(value, str):
        return _Quoted(re.sub(r"(?<!\\)(\\*)\$\{", lambda match: match[1] * 2 + r"\${", value))
    return value


class _Quoted(str):
    """A text that is written in double quotes."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # has no types
    """Writes those as well."""


_Dumper.add_representer(
    _Quoted, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)
