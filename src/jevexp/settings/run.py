"""How a run is bounded, priced and run."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from jevexp.settings.base import EnvironmentVariable, Model, Name, Usd
from jevexp.untrusted.addresses import check_database_address

DATABASES = ("sqlite:///", "postgresql://", "postgresql+psycopg://")

# The commit of github.com/fstandhartinger/jevbench whose protocol the harness follows. Its version
# strings disagree with each other, so nothing else names it.
PINNED_COMMIT = "bb05a335bc809e61b20c0f745d25499a82b326fc"


class Caps(Model):
    """What a run may spend. `ledger` and `ledger_url` null: inside the run or the sweep."""

    name: Name
    cap_usd: Usd
    reserve_usd: Usd
    limit: Annotated[int, Field(ge=1)] | None
    ledger: str | None
    ledger_on_network: bool
    ledger_url: str | None
    ledger_password_env: EnvironmentVariable | None
    reason: str | None

    @model_validator(mode="after")
    def _reason_given(self) -> Self:
        if self.reserve_usd == 0 and not self.reason:
            raise ValueError("reason: reserving nothing needs a reason, which the manifest keeps")
        return self

    @model_validator(mode="after")
    def _one_ledger(self) -> Self:
        if self.ledger_url is None:
            if self.ledger_password_env is not None:
                raise ValueError("ledger_password_env: only ledger_url takes a password")
            return self
        if self.ledger is not None:
            raise ValueError("ledger_url: give either a file, ledger, or a database, ledger_url")
        check_ledger_url(self.ledger_url)
        if self.ledger_password_env is not None:
            check_database_address(
                self.ledger_url, field="ledger_url", login_field="ledger_password_env"
            )
        return self


def check_ledger_url(url: str) -> None:
    """Refuse an address that is none, or that holds a password.

    Raises:
        ValueError: the message begins with `ledger_url`, as our validators' messages do.
    """
    # Not shown in any of these: what makes it wrong may be a password.
    parts = urlsplit(url)
    if parts.password is not None or "password" in parts.query.lower():
        raise ValueError(
            "ledger_url: holds a password, which would get into files; give the name of an "
            "environment variable that holds it in ledger_password_env"
        )
    named = parts.path.strip("/") and not parts.path.startswith("/:memory:")
    if not url.startswith(DATABASES) or not named:
        raise ValueError(
            "ledger_url: expected sqlite:///FILE or postgresql://[USER@]HOST[:PORT]/DATABASE"
        )
    if url.startswith("sqlite") and "?" in url:
        # mode=memory would forget what was spent, nolock=1 let everybody spend at once.
        raise ValueError("ledger_url: sqlite:///FILE takes no parameters; leave ?… out")


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

    `path` is a git checkout that holds the pinned one; null: the installed package.
    """

    name: Literal["native", "upstream"]
    path: str | None

    @model_validator(mode="after")
    def _path_of_upstream(self) -> Self:
        if self.name == "native" and self.path is not None:
            raise ValueError("path: only harness=upstream takes one")
        return self
