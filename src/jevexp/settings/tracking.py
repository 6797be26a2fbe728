"""What MLflow is told of where and how finished runs are logged."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import EnvironmentVariable, Seconds, TrackerSettings
from jevexp.untrusted.addresses import check_address, holds_password


class MlflowTracking(TrackerSettings):
    """MLflow. `uri` null: an SQLite database under the outputs folder. `kind` none: no tracker.

    Runs from before the fields with a default do not have them, and are still exported.
    """

    kind: Literal["mlflow", "none"]
    uri: str | None
    experiment: Annotated[str, Field(min_length=1, max_length=500)]
    raw_evidence: bool
    report: bool = True
    traces: bool = False
    timeout_s: Seconds
    token_env: EnvironmentVariable | None = None
    username_env: EnvironmentVariable | None = None
    password_env: EnvironmentVariable | None = None
    allow_http: bool = False

    @model_validator(mode="after")
    def _store_without_password(self) -> Self:
        # What is wrong is not shown: it may hold a password, and the manifest shows every field.
        if self.uri is None:
            return self
        if not re.match(r"[a-z][a-z0-9+.-]*://.|databricks$", self.uri):
            raise ValueError(
                "uri: expected a server's http(s)://HOST[:PORT] or a database's URI, such as "
                "sqlite:////absolute/mlflow.db"
            )
        if holds_password(self.uri) or re.match(r"https?://[^/]*@", self.uri):
            raise ValueError(
                "uri: holds a password or a user; for a server name the environment variables that "
                "hold them in username_env and password_env, for a database use its own password "
                "file"
            )
        if self.uri.startswith("sqlite") and "?" in self.uri:
            raise ValueError("uri: sqlite:///FILE takes no parameters; leave ?… out")
        return self

    @model_validator(mode="after")
    def _one_login(self) -> Self:
        pair = (self.username_env, self.password_env)
        if self.token_env and any(pair):
            raise ValueError(
                "token_env: a server is asked with a token or with a user and password, not both; "
                "leave token_env or username_env and password_env null"
            )
        if any(pair) and not all(pair):
            raise ValueError("username_env: a user and a password go together; set both or neither")
        if self.token_env or any(pair):
            if not re.match(r"https?://", self.uri or ""):
                raise ValueError(
                    "token_env, username_env, password_env: only a server is logged in to; set "
                    "uri to its http(s)://HOST[:PORT]"
                )
            self.check_login("token_env" if self.token_env else "password_env")
        return self

    def check_login(self, field: str) -> None:
        """Refuse a server that the login from `field` must not be sent to.

        Raises ValueError: the message begins with `uri`.
        """
        check_address(
            self.uri or "",
            allow_http=self.allow_http,
            field="uri",
            key_field=field,
            way_out="set tracking.allow_http=true (--allow-http)",
        )
