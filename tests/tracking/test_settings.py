"""Addresses that are refused before anything runs."""

import pytest

from jevexp.errors import InputError
from jevexp.settings import Tracking
from tests.support.runs import tracking


def fields(uri: str) -> dict[str, object]:
    return tracking().model_dump(mode="json") | {"uri": uri}


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:5000",
        "https://mlflow.example/base",
        "sqlite:////data/mlflow.db",
        "postgresql+psycopg://user@host/db",
        "databricks",
    ],
)
def test_an_address_is_taken(uri: str) -> None:
    assert Tracking.of(fields(uri), at="tracking").uri == uri


@pytest.mark.parametrize("uri", ["mlruns", "./mlruns", "127.0.0.1:5000", "/data/mlflow.db", ""])
def test_what_is_no_address_is_refused_with_an_example(uri: str) -> None:
    with pytest.raises(InputError, match=r"^tracking\.uri: expected .* sqlite:////absolute"):
        Tracking.of(fields(uri), at="tracking")


@pytest.mark.parametrize(
    "uri",
    [
        "http://user:hunter2@host",
        "https://hunter2@host",
        "postgresql://user:hunter2@host/db",
        "postgresql://host/db?user=me&password=hunter2",
    ],
)
def test_a_password_is_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(InputError, match="MLFLOW_TRACKING_PASSWORD") as refused:
        Tracking.of(fields(uri), at="tracking")
    assert "hunter2" not in str(refused.value)
