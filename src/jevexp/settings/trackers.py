"""Every kind of tracker, one line each: its settings, and the module that logs to it.

A new tracker takes its own module, its own settings and one line here. The module has one function,
`make(settings, outputs)`, which returns a `jevexp.tracking.Tracker`.
"""

import pkgutil
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self, Union

from pydantic import Field, model_validator

from jevexp.settings.base import Name, TrackerSettings
from jevexp.settings.tracking import MlflowTracking


class TrackerEntry(NamedTuple):
    """One kind of tracker: `settings_class` as `module:class`; `module` is imported when used."""

    settings_class: str
    module: str


TRACKERS = {
    "mlflow": TrackerEntry("jevexp.settings.tracking:MlflowTracking", "jevexp.tracking.mlflow")
}

if TYPE_CHECKING:
    AnyTracker = TrackerSettings
else:
    # What a type checker cannot follow: the union of all settings in the list.
    AnyTracker = Union[tuple(pkgutil.resolve_name(e.settings_class) for e in TRACKERS.values())]  # noqa: UP007
    if len(TRACKERS) > 1:
        # Of a single class, pydantic refuses it.
        AnyTracker = Annotated[AnyTracker, Field(discriminator="kind")]


class Tracking(MlflowTracking):
    """Where finished runs are logged: MLflow, unless `kind` is none, and the trackers of `also`."""

    also: dict[Name, AnyTracker] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_of_their_own(self) -> Self:
        if "mlflow" in self.also:
            raise ValueError("also: mlflow is the name of the first tracker; choose another name")
        return self

    @property
    def trackers(self) -> dict[str, TrackerSettings]:
        """The settings of every tracker that is to be told, by name."""
        named: dict[str, TrackerSettings] = {"mlflow": self, **self.also}
        return {name: entry for name, entry in named.items() if entry.kind != "none"}
