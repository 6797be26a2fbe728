"""What all settings share: types of single values, the base of every group, and its messages."""

import difflib
import math
import os
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jevexp.core.json import dumps, representable
from jevexp.errors import InputError

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
EnvironmentVariable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# One path segment: what names are made of that become part of a directory's name.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]


class FrozenSettings(BaseModel):
    """Base of all settings: frozen, unknown keys refused, numbers and texts never mixed up."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def of(cls, fields: Mapping[str, Any], *, at: str = "") -> Self:
        """Validate plain JSON, composed or from a file.

        `at` is where the fields stand in the whole configuration, for messages.

        Raises InputError: naming the field, what was found and what is expected.
        """
        if fault := _unrepresentable(fields, at):
            raise InputError(fault)
        try:
            # Lists become tuples and integers become floats, as YAML means them; nothing else is
            # converted, so that a number in quotes is a mistake and not a number.
            return cls.model_validate_json(dumps(fields))
        except ValidationError as error:
            raise InputError(_explain(error, cls, fields, at)) from error


class BackendSettings(FrozenSettings):
    """Base of every provider's settings; `kind` tells the providers apart."""

    kind: str
    name: Name

    # Whether a price must not be configured.
    costs_nothing: ClassVar[bool] = False


class TrackerSettings(FrozenSettings):
    """Base of every tracker's settings; `kind` tells the trackers apart."""

    kind: str


def read_secret(variable: str | None, field: str) -> str | None:
    """The value of the environment variable that `field` names, for an HTTP header, or None.

    Raises InputError: the variable is not set, or holds what no HTTP header can. The value is not
    shown.
    """
    if variable is None:
        return None
    secret = os.environ.get(variable, "")
    if not secret:
        raise InputError(
            f"{field}: {variable} is not set; export it with the secret that the server wants, or "
            "set the field to null"
        )
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise InputError(
            f"{field}: {variable} holds characters that no HTTP header can hold; export it again"
        )
    return secret


def _explain(
    error: ValidationError, settings: type[BaseModel], fields: Mapping[str, Any], at: str
) -> str:
    """One line for the first mistake: the field, what was found, what to do."""
    first = error.errors()[0]
    location = list(_typed(first["loc"], fields, missing=first["type"] == "missing"))
    field = ".".join([at, *location] if at else location)
    if first["type"] == "extra_forbidden":
        return unknown_field(field, settings, at, fields)
    if first["type"] == "missing":
        return f"{field}: missing; set {field}=VALUE"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        # Our own validators begin with the field below the model they check.
        return f"{field}.{message}" if field else message
    return f"{field}: {message[0].lower()}{message[1:]}, found {first['input']!r}"


def _typed(location: Sequence[int | str], value: Any, *, missing: bool) -> Iterator[str]:
    """A location without the tags of discriminated unions; a person never typed those."""
    for number, part in enumerate(location, 1):
        # A field that is missing is the last part.
        if not isinstance(value, Mapping) or part in value or (missing and number == len(location)):
            yield str(part)
            value = value.get(part) if isinstance(value, Mapping) else None


def unknown_field(field: str, settings: type[BaseModel], at: str = "", values: Any = None) -> str:
    """One line for a dotted `field` that `settings` does not have, with near fields that it has.

    `at` is the dotted name of the model `settings` itself; empty for the whole configuration.
    `values` are the settings as far as they are known: they choose among kinds.
    """
    known = list(field_names(settings, f"{at}." if at else "", values))
    parent, _, leaf = field.rpartition(".")
    group = f"{field.partition('.')[0]}."
    same = [name for name in known if name.startswith(group) and name.endswith(f".{leaf}")]
    if len(same) == 1:
        return f"{field}: no such field; did you mean {same[0]}?"
    parts = [name.rpartition(".") for name in known]
    siblings = sorted({part[2] for part in parts if part[0] == parent})
    if near := difflib.get_close_matches(leaf, siblings, n=1):
        return f"{field}: no such field; did you mean {parent}{'.' if parent else ''}{near[0]}?"
    while parent and not siblings:
        parent = parent.rpartition(".")[0]
        siblings = sorted({part[2] for part in parts if part[0] == parent})
    if parent:
        return f"{field}: no such field; {parent} has {', '.join(siblings)}"
    if near := difflib.get_close_matches(field, known, n=1):
        return f"{field}: no such field; did you mean {near[0]}?"
    return f"{field}: no such field; see jevexp --cfg job for all fields"


def field_names(model: type[BaseModel], prefix: str = "", values: Any = None) -> Iterator[str]:
    """Every dotted field name below `model`, its groups included.

    Where `values` have a `kind`, of that kind alone.
    """
    for name, field in model.model_fields.items():
        dotted = f"{prefix}{name}"
        yield dotted
        value = values.get(name) if isinstance(values, Mapping) else None
        for part in _models_in(field.annotation):
            if _has_kind(part, value):
                yield from field_names(part, f"{dotted}.", value)


def _has_kind(model: type[BaseModel], value: Any) -> bool:
    kind = value.get("kind") if isinstance(value, Mapping) else None
    field = model.model_fields.get("kind")
    return kind is None or field is None or kind in get_args(field.annotation)


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
        parts = []
    return next(filter(None, (_unrepresentable(part, name) for name, part in parts)), None)
