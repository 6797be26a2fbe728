"""What all settings share: types of single values, and the base of every group."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jevexp.core.json import dumps, representable
from jevexp.errors import InputError
from jevexp.settings.messages import explain

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
EnvironmentVariable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# One path segment: what names are made of that become part of a directory's name.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"]


class Model(BaseModel):
    """Base of all settings: frozen, unknown keys refused, numbers and texts never mixed up."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def of(cls, fields: Mapping[str, Any], *, at: str = "") -> Self:
        """Validate plain fields, as they were composed or stand in a file.

        Args:
            fields: plain JSON.
            at: where the fields stand in the whole configuration, for messages.

        Raises:
            InputError: naming the field, what was found and what is expected.
        """
        if fault := _unrepresentable(fields, at):
            raise InputError(fault)
        try:
            # Lists become tuples and integers become floats, as YAML means them; nothing else is
            # converted, so that a number in quotes is a mistake and not a number.
            return cls.model_validate_json(dumps(fields))
        except ValidationError as error:
            raise InputError(explain(error, at)) from error


class BackendSettings(Model):
    """Base of every provider's settings; `kind` tells the providers apart.

    `costs_nothing` says that no price may be configured for a provider.
    """

    kind: str
    name: Name

    costs_nothing: ClassVar[bool] = False


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
        return None
    return next(filter(None, (_unrepresentable(part, name) for name, part in parts)), None)
