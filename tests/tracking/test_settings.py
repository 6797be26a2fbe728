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
        "postgresql://host/db?pass%77ord=hunter2",
        "postgresql://me:hun/ter2@host/db",
        "https://host/?token=hunter2",
    ],
)
def test_a_password_is_refused_and_not_repeated(uri: str) -> None:
    with pytest.raises(InputError, match="username_env and password_env") as refused:
        Tracking.of(fields(uri), at="tracking")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"token_env": "A", "username_env": "B", "password_env": "C"}, "not both"),
        ({"username_env": "B"}, "set both or neither"),
        ({"password_env": "C"}, "set both or neither"),
        ({"token_env": "A", "uri": None}, "only a server is logged in to"),
        ({"token_env": "A", "uri": "sqlite:////data/mlflow.db"}, "only a server is logged in to"),
        ({"token_env": "not a name"}, r"^tracking\.token_env: "),
    ],
)
def test_half_a_login_or_two_are_refused(changed: dict[str, str | None], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Tracking.of(fields("https://mlflow.example") | changed, at="tracking")


def test_a_run_from_before_there_were_logins_and_traces_can_be_exported() -> None:
    old = {name: fields("https://x")[name] for name in
           ("kind", "uri", "experiment", "raw_evidence", "timeout_s")}  # fmt: skip
    assert Tracking.of(old, at="tracking") == Tracking.of(fields("https://x"), at="tracking")


def test_a_login_goes_by_plain_http_to_no_other_machine_unless_a_person_says_so() -> None:
    logins = ({"token_env": "A"}, {"username_env": "B", "password_env": "C"})
    for login in logins:
        with pytest.raises(InputError, match=r"^tracking\.uri: plain http .*tracking.allow_http"):
            Tracking.of(fields("http://mlflow.example:5000") | login, at="tracking")
        allowed = fields("http://mlflow.example:5000") | login | {"allow_http": True}
        assert Tracking.of(allowed, at="tracking").allow_http
        Tracking.of(fields("http://127.0.0.1:5000") | login, at="tracking")
    Tracking.of(fields("http://mlflow.example:5000"), at="tracking")


def test_a_database_file_takes_no_parameters() -> None:
    with pytest.raises(InputError, match=r"^tracking\.uri: sqlite:///FILE takes no parameters"):
        Tracking.of(fields("sqlite:////data/mlflow.db?mode=memory"), at="tracking")
