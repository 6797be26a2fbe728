"""A ready option of the `model` group that declares everything that was observed."""

import re
from collections.abc import Iterator
from typing import Any, get_args

from jevexp.core.identity import Source
from jevexp.identity.observed import Observed
from jevexp.settings import CacheType

_EXTENSION = re.compile(r"(-\d{5}-of-\d{5})?\.gguf$", re.IGNORECASE)
# What a claim may be; see jevexp.settings.ModelIdentity.
_LEAST_CONTEXT = 64


def model_config(observed: Observed, name: str) -> str:
    """The YAML text of conf/model/`name`.yaml.

    Composed and reconciled with the same observations, it is confirmed.

    Args:
        observed: of a file or of a server.
        name: what the option is called, as `jevexp.settings.Name` allows it.
    """
    return "\n".join(_lines(observed, name)) + "\n"


def _lines(observed: Observed, name: str) -> Iterator[str]:
    title = observed.header.name if observed.header else None
    yield f"# {_comment(title or observed.value('alias') or name)}"
    yield "# What was observed, as a claim that is checked before every run. Set to null what does"
    yield "# not belong to your claim, and fill in where the weights were published."
    yield "defaults:"
    yield "  - unclaimed"
    yield f"name: {_text(name)}"
    yield f"alias: {_text(_alias(observed, name))}"
    yield "weights:"
    yield from _file(observed, "weights", read_here=observed.header is not None)
    yield "  repository: null"
    yield "  revision: null"
    yield "quantization:"
    ftype = _ftype(observed)
    yield f"  label: {_scalar(ftype)}"
    yield f"  ftype: {_scalar(ftype)}"
    yield f"  tensor_types: {_scalar(observed.value('quantization.tensor_types'))}"
    yield "chat_template:"
    yield f"  sha256: {_scalar(observed.value('chat_template.sha256'))}"
    yield from _further_files(observed)
    yield from _serving(observed)


def _alias(observed: Observed, name: str) -> str:
    """What a server calls the model, else the file's name without its extension."""
    return observed.value("alias") or _EXTENSION.sub("", observed.value("weights.file") or name)


def _file(observed: Observed, prefix: str, *, read_here: bool, indent: str = "  ") -> Iterator[str]:
    """One file's claims; a server's path is of no use on another machine."""
    yield f"{indent}file: {_scalar(observed.value(f'{prefix}.file'))}"
    yield f"{indent}path: {_scalar(observed.value(f'{prefix}.path') if read_here else None)}"
    yield f"{indent}sha256: {_scalar(observed.value(f'{prefix}.sha256'))}"
    yield f"{indent}bytes: {_scalar(observed.value(f'{prefix}.bytes'))}"


def _ftype(observed: Observed) -> str | None:
    """The file type, unless it is only guessed."""
    found = observed.values.get("quantization.ftype", ())
    return next((v.value for v in found if v.source is not Source.SERVER_GUESS), None)


def _further_files(observed: Observed) -> Iterator[str]:
    names = [
        field.removeprefix("files.").removesuffix(".sha256")
        for field in observed.values
        if field.startswith("files.") and field.endswith(".sha256")
    ]
    if names:
        yield "files:"
    for name in names:
        yield f"  {_text(name)}:"
        yield from _file(observed, f"files.{name}", read_here=True, indent="    ")


def _serving(observed: Observed) -> Iterator[str]:
    context = observed.value("context")
    yield f"context: {_scalar(context if context and context >= _LEAST_CONTEXT else None)}"
    for name in ("cache_type_k", "cache_type_v"):
        cache = observed.value(name)
        yield f"{name}: {_scalar(cache if cache in get_args(CacheType) else None)}"


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {count}" for name, count in value.items()) + "}"
    return _text(value) if isinstance(value, str) else str(value)


def _text(value: str) -> str:
    """A quoted text that YAML, and then OmegaConf, reads back as it is."""
    # OmegaConf would look up what stands in ${...}; a backslash, itself doubled, prevents that.
    literal = re.sub(r"(?<!\\)(\\*)\$\{", lambda found: found[1] * 2 + r"\${", value)
    return '"' + "".join(_escaped(character) for character in literal) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _comment(text: Any) -> str:
    return "".join(c if c.isprintable() else " " for c in str(text))[:90]
