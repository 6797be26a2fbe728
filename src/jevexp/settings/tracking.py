"""Where finished runs are logged."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import Model, Seconds


class Tracking(Model):
    """Where finished runs are logged. `uri` null: an SQLite database under the outputs folder."""

    kind: Literal["mlflow", "none"]
    uri: str | None
    experiment: Annotated[str, Field(min_length=1, max_length=500)]
    raw_evidence: bool
    timeout_s: Seconds

    @model_validator(mode="after")
    def _store_without_password(self) -> Self:
        # What is wrong is not shown: it may hold a password, and the manifest shows every field.
        if self.uri is not None and not re.match(r"[a-z][a-z0-9+.-]*://.|databricks$", self.uri):
            raise ValueError(
                "uri: expected a server's http(s)://HOST[:PORT] or a database's URI, such as "
                "sqlite:////absolute/mlflow.db"
            )
        if self.uri and re.search(r"://[^/]*:[^/]*@|^https?://[^/]*@|password=", self.uri):
            raise ValueError(
                "uri: holds a password or a user; for a server set MLFLOW_TRACKING_USERNAME and "
                "MLFLOW_TRACKING_PASSWORD, for a database use its own password file"
            )
        return self
