"""MLflow as a guest in this process: bounded, silent, and gone without a trace."""

import logging
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

TIMEOUT = "MLFLOW_HTTP_REQUEST_TIMEOUT"
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    TIMEOUT: "10",
    # A retry would double the wait, and could make a run twice.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


@contextmanager
def conversation(timeout_s: float, login: Mapping[str, str | None] | None = None) -> Iterator[None]:
    """Import and use MLflow in here, and only in here.

    MLflow takes its limits and its login from the environment: without limits an unreachable server
    holds things up for four minutes. The environment is put back afterwards, so that no child
    inherits it.
    """
    # Whole seconds; 0 would mean no limit.
    wanted = ENVIRONMENT | {TIMEOUT: str(math.ceil(timeout_s))} | dict(login or {})
    before = {name: os.environ.get(name) for name in wanted}
    _set(wanted)
    disabled = logging.root.manager.disable
    # MLflow, Alembic and SQLAlchemy tell the terminal about tables and retries.
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
