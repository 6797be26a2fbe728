"""What a person is told about a mistake in the configuration: one line, with the way out."""

import difflib
import types
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError


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
    # The whole tree of settings stands on this module.
    from jevexp.settings.settings import Settings

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
