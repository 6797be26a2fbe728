"""How a tracking server is told who asks: values stay in the environment and in its requests."""

from base64 import b64encode
from collections.abc import Mapping

from jevexp.settings import Tracking
from jevexp.settings.base import read_secret

# Where MLflow looks for them.
TOKEN = "MLFLOW_TRACKING_TOKEN"  # noqa: S105  a name
USERNAME = "MLFLOW_TRACKING_USERNAME"
PASSWORD = "MLFLOW_TRACKING_PASSWORD"  # noqa: S105  a name


def login(settings: Tracking) -> dict[str, str | None]:
    """MLflow's own variables for the login that is configured; empty where none is.

    Where one is, what else the environment may hold for MLflow is unset (null): a user there would
    win over the token.

    Raises:
        InputError: a variable is not set, or holds what no HTTP header can. It is not shown.
    """
    if settings.token_env is None and settings.username_env is None:
        return {}
    return {
        TOKEN: read_secret(settings.token_env, "tracking.token_env"),
        USERNAME: read_secret(settings.username_env, "tracking.username_env"),
        PASSWORD: read_secret(settings.password_env, "tracking.password_env"),
    }


def secrets(variables: Mapping[str, str | None]) -> list[str]:
    """What must not be shown of a login, in every form in which it is sent."""
    user, password = variables.get(USERNAME), variables.get(PASSWORD)
    pair = b64encode(f"{user}:{password}".encode()).decode() if password else None
    return [secret for secret in (variables.get(TOKEN), pair, password) if secret]
