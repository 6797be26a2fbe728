"""What stands out beside the fields: names that say otherwise, templates that are missing."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jevexp.core.ftype import ftype_of, quantizations_in
from jevexp.core.identity import Finding, Level, Source
from jevexp.identity.observed import Observed


def findings(declared: Mapping[str, Any], observed: Observed) -> Iterator[Finding]:
    """Everything that stands out, the order being the fields'."""
    yield from _names(declared, observed)
    yield from _alias_quantization(declared, observed)
    yield from _guess(observed)
    yield from _template(observed)


def _names(declared: Mapping[str, Any], observed: Observed) -> Iterator[Finding]:
    """A name proves nothing, and so another name disproves nothing."""
    for field, claim in declared.items():
        found = observed.values.get(field, ())
        if not is_name(field) or not found or any(same_name(field, claim, v.value) for v in found):
            continue
        level = Level.WARNING if field == "alias" else Level.NOTE
        message = f"declared {claim}, found {found[0].value} ({found[0].source})"
        yield _finding(level, "other_name", field, message)


def is_name(field: str) -> bool:
    """Whether a field only names or locates what it is about."""
    return field == "alias" or field.endswith((".file", ".path"))


def same_name(field: str, claim: Any, found: Any) -> bool:
    """Whether two names are the same; paths are compared as absolute ones."""
    if not field.endswith(".path"):
        return bool(claim == found)
    path = Path(str(claim))
    with suppress(RuntimeError):  # ~somebody, who is not known here
        path = path.expanduser()
    return path.absolute() == Path(str(found))


def _alias_quantization(declared: Mapping[str, Any], observed: Observed) -> Iterator[Finding]:
    """A quantization in a name that is not the weights' own."""
    claim = declared.get("quantization.ftype") or _label_type(declared)
    header = _judged_ftype(observed)
    truth = header or claim
    if truth is None:
        return
    names = [str(declared["alias"]), *(str(v.value) for v in observed.values.get("alias", ()))]
    for name in dict.fromkeys(names):
        said = quantizations_in(name)
        if not said or any(truth in types for types in said):
            continue
        words = " and ".join(" or ".join(sorted(types)) for types in said)
        message = f"{name!r} says {words}, " + (
            f"the weights are {header}" if header else f"{claim} is declared"
        )
        if claim == truth:
            yield _finding(
                Level.EXPLAINED, "alias_quantization", "alias", f"{message}, as declared"
            )
        elif claim is not None and any(claim in types for types in said):
            yield _finding(Level.CONTRADICTION, "alias_quantization", "alias", message)
        else:
            yield _finding(Level.WARNING, "alias_quantization", "alias", message)


def _label_type(declared: Mapping[str, Any]) -> str | None:
    """The file type that the label names, where it names one."""
    label = declared.get("quantization.label")
    found = ftype_of(str(label)) if label is not None else None
    return found.name if found else None


def _judged_ftype(observed: Observed) -> str | None:
    found = observed.values.get("quantization.ftype", ())
    return next((str(v.value) for v in found if v.source is not Source.SERVER_GUESS), None)


def _guess(observed: Observed) -> Iterator[Finding]:
    for found in observed.values.get("quantization.ftype", ()):
        if found.source is Source.SERVER_GUESS:
            message = f"the header has no file type; the server guesses {found.value}"
            yield _finding(Level.NOTE, "guessed_ftype", "quantization.ftype", message)


def _template(observed: Observed) -> Iterator[Finding]:
    """The server's template is not the file's: legitimate, and it changes what is measured."""
    header, field = observed.header, "chat_template.sha256"
    served = [v for v in observed.values.get(field, ()) if v.source is Source.SERVER_PROPS]
    if header is None:
        return
    if header.chat_template_sha256 is None:
        rest = "; the server renders its own fallback" if served else ""
        message = f"the weights' file has no chat template{rest}"
        yield _finding(Level.NOTE, "no_template", field, message)
    elif served and served[0].value != header.chat_template_sha256:
        message = "the server renders another chat template than the one in the weights' file"
        yield _finding(Level.WARNING, "other_template", field, message)


def _finding(level: Level, code: str, field: str, message: str) -> Finding:
    return Finding(level=level, code=code, field=field, message=message)
