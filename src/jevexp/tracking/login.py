"""How a tracking server is told who asks: values stay in the environment and in its requests."""

import os
from base64 import b64encode
from collections.abc import Mapping

from jevexp.errors import InputError
from jevexp.settings import Tracking
from jevexp.settings.base import read_secret

# Where MLflow looks for them.
TOKEN = "MLFLOW_TRACKING_TOKEN"  # noqa: S105  a name
USERNAME = "MLFLOW_TRACKING_USERNAME"
PASSWORD = "MLFLOW_TRACKING_PASSWORD"  # noqa: S105  a name


def login(settings: Tracking) -> dict[str, str]:
    """MLflow's own variables for the login of a server; empty where none is used.

    Where none is configured, those that the environment holds for MLflow are used. Where one is,
    they are not: a user there would win over the token.

    Raises:
        InputError: a variable is not set, or holds what no HTTP header can; or the login would go
            to another machine unprotected. It is not shown.
    """
    if not (settings.uri or "").startswith(("http://", "https://")):
        return {}
    if settings.token_env is None and settings.username_env is None:
        return _of_environment(settings)
    values = {
        TOKEN: read_secret(settings.token_env, "tracking.token_env"),
        USERNAME: read_secret(settings.username_env, "tracking.username_env"),
        PASSWORD: read_secret(settings.password_env, "tracking.password_env"),
    }
    return {name: value for name, value in values.items() if value is not None}


def _of_environment(settings: Tracking) -> dict[str, str]:
    values = {name: os.environ.get(name) for name in (TOKEN, USERNAME, PASSWORD)}
    found = {name: value for name, value in values.items() if value}
    if secret := next((name for name in (TOKEN, PASSWORD) if name in found), None):
        try:
            settings.check_login(secret)
        except ValueError as error:
            raise InputError(f"tracking.{error}; or unset {secret}") from error
    return found


def secrets(variables: Mapping[str, str]) -> list[str]:
    """What must not be shown of a login, in every form in which it is sent."""
    user, password = variables.get(USERNAME), variables.get(PASSWORD)
    pair = b64encode(f"{user}:{password}".encode()).decode() if password else None
    return [secret for secret in (variables.get(TOKEN), pair, password) if secret]
