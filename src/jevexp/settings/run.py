"""How a run is bounded, priced and run."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import Model, Name, Usd


class Caps(Model):
    """What a run may spend. `ledger` null: inside the run or the sweep."""

    name: Name
    cap_usd: Usd
    reserve_usd: Usd
    limit: Annotated[int, Field(ge=1)] | None
    ledger: str | None
    reason: str | None

    @model_validator(mode="after")
    def _reason_given(self) -> Self:
        if self.reserve_usd == 0 and not self.reason:
            raise ValueError("reason: reserving nothing needs a reason, which the manifest keeps")
        return self


class Pricing(Model):
    """A route's list price in US dollars per million tokens; null means unknown."""

    name: Name
    input_per_m: Usd | None
    output_per_m: Usd | None
    basis: str | None
    source: str | None


class Runner(Model):
    """How the tasks are put to the provider: `concurrency` requests are under way at once."""

    concurrency: Annotated[int, Field(ge=1, le=1024)]


class Harness(Model):
    """Which implementation of the benchmark's protocol runs the tasks.

    `path` is a git checkout of the pinned one; null: the installed package.
    """

    name: Literal["native", "upstream"]
    path: str | None

    @model_validator(mode="after")
    def _path_of_upstream(self) -> Self:
        if self.name == "native" and self.path is not None:
            raise ValueError("path: only harness=upstream takes one")
        return self
