"""Addresses that may get a key, and the settings that must ask."""

import typing
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from jevexp.errors import InputError
from jevexp.settings import LlamaCppBackend, Settings
from jevexp.untrusted.addresses import (
    check_address,
    check_database_address,
    holds_password,
    is_loopback,
    redacted,
)
from tests.support.compose import compose


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example",
        "https://a.example:8443/v2/",
        "http://127.0.0.1:8080",
        "http://127.9.9.9",
        "http://[::1]:1",
        "http://localhost",
        "https://bücher.example",
    ],
)
def test_https_and_this_machine_may_get_a_key(url: str) -> None:
    check_address(url, allow_http=False)


@pytest.mark.parametrize("url", ["http://0.0.0.0:8080", "https://0.0.0.0", "http://[::]:8080"])
def test_where_a_server_listens_is_no_address_to_ask(url: str) -> None:
    with pytest.raises(ValueError, match=r"^base_url: a server listens on .* write 127\.0\.0\.1 "):
        check_address(url, allow_http=True)


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example",
        "http://192.168.0.2:8080",
        "http://localhost.a.example",
        "http://localhost.",
        "http://127.0.0.1.a.example",
        "http://127.0.0.1%2ea.example",
        "http://2130706433",
        "http://0x7f.1",
        "http://[2001:db8::1]",
    ],
)
def test_plain_http_to_another_machine_needs_a_persons_word(url: str) -> None:
    with pytest.raises(ValueError, match=r"^base_url: plain http .* set allow_http=true in a"):
        check_address(url, allow_http=False)
    check_address(url, allow_http=True)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.example",
        "ftp://a.example",
        "HTTP://a.example",
        "http:/a.example",
        "http://",
        "https://:443",
        "https://me@a.example",
        "https://me:hush@a.example",
        "https://@a.example",
        "https://a.example?key=hush",
        "https://a.example?",
        "https://a.example/#hush",
        "https://a.example/#",
        "https://a.example:port",
        "https://a.example:99999",
        "https://[::1",
        "http://localhost\\@a.example",
        "http://a.example\\.localhost",
        "http://local\thost",
        "http://localhost\n",
        " http://localhost",
        "http://localhost /",
        "http://localhost\x00",
        "http://localhost\u00a0",
    ],
)
@pytest.mark.parametrize("allow_http", [True, False])
def test_what_is_no_plain_address_is_refused_and_not_shown(url: str, allow_http: bool) -> None:
    with pytest.raises(ValueError, match=r"^uri: expected http\(s\)://HOST.*token_env") as raised:
        check_address(url, allow_http=allow_http, field="uri", key_field="token_env")
    assert "hush" not in str(raised.value)


def test_what_is_no_address_is_not_this_machine() -> None:
    assert not is_loopback("http://[::1")
    assert not is_loopback("nonsense")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u@127.0.0.1/d",
        "postgresql:///d",
        "sqlite:///ledger.db",
        "postgresql://u@db.example/d?sslmode=verify-full",
        "postgresql://u@db.example/d?options=-cx%3Dy&sslmode=disable",
    ],
)
def test_a_password_goes_to_a_database_here_or_as_a_person_decided(url: str) -> None:
    check_database_address(url, field="ledger_url", login_field="ledger_password_env")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u@db.example/d",
        "postgresql+psycopg://db.example/d?connect_timeout=1",
        "postgresql://u@localhost/d?host=db.example",
        "postgresql:///d?hostaddr=192.168.0.2",
        "postgresql:///d?service=far",
        "postgresql://u@db.example/d?sslmode",
        "postgresql://u@[::1/d",
    ],
)
def test_a_password_is_not_sent_to_a_database_elsewhere_by_default(url: str) -> None:
    with pytest.raises(ValueError, match=r"^ledger_url: the password of ledger_password_env would"):
        check_database_address(url, field="ledger_url", login_field="ledger_password_env")


# What each group of settings with an address and a key is composed with, and what its address is
# set to here, by the place of the address.
HTTP = "http://models.example"
GUARDED = {
    ("LlamaCppBackend", "backend.server.base_url"): (
        "backend=llama_cpp",
        "backend.server.key_env=KEY",
    ),
    ("SystemOneBackend", "backend.base_url"): ("backend=systemone", "backend.key_env=KEY"),
    ("OpenAIChatBackend", "backend.base_url"): ("backend=openai_chat", "backend.key_env=KEY"),
    ("OpenAILogprobsBackend", "backend.base_url"): (
        "backend=openai_logprobs",
        "backend.key_env=KEY",
    ),
    ("DecisionsBackend", "backend.base_url"): ("backend=decisions", "backend.key_env=KEY"),
    ("JudgevetBackend", "backend.base_url"): ("backend=judgevet", "backend.key_env=KEY"),
    ("Caps", "caps.ledger_url"): ("caps.ledger_password_env=KEY",),
}
FOREIGN = {"caps.ledger_url": "postgresql://team@models.example/budget"}
PART_OF_AN_ADDRESS = {"url", "uri", "address", "endpoint", "host", "server", "origin"}
PART_OF_A_SECRET = {"env", "key", "token", "password", "secret", "login", "header"}


def fields_of(model: type[BaseModel], path: str) -> Iterator[tuple[str, str, Any]]:
    """Path, name and type of every field below a model; of a union, of each member."""
    for name, field in model.model_fields.items():
        here = f"{path}.{name}"
        models = list(models_in(field.annotation))
        if not models:
            yield here, name, field.annotation
        for inner in models:
            yield from fields_of(inner, here)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from models_in(argument)


def addresses_with_keys() -> Iterator[tuple[str, str]]:
    for group, field in Settings.model_fields.items():
        for model in models_in(field.annotation):
            found = list(fields_of(model, group))
            if any(PART_OF_A_SECRET & set(name.split("_")) for _, name, _ in found):
                for path, name, annotation in found:
                    is_text = "str" in str(annotation)
                    if is_text and PART_OF_AN_ADDRESS & set(name.split("_")):
                        yield model.__name__, path


@pytest.mark.parametrize(("model", "path"), sorted(set(addresses_with_keys())))
def test_no_settings_with_an_address_and_a_key_go_unchecked(model: str, path: str) -> None:
    if path in ("tracking.uri", "tracking.also.uri"):
        # A login is optional there; the next test asks for one.
        return
    assert (model, path) in GUARDED, f"{path}: call check_address, then add it here"
    address = FOREIGN.get(path, HTTP)
    with pytest.raises(InputError) as raised:
        compose(*GUARDED[model, path], f"{path}='{address}'")
    assert str(raised.value).startswith(f"{path}: ")
    assert "another machine" in str(raised.value)


@pytest.mark.parametrize("login", ["token_env: KEY", "username_env: ME, password_env: KEY"])
@pytest.mark.parametrize("field", ["tracking.uri", "tracking.also.second.uri"])
def test_no_tracker_gets_a_login_by_plain_http_on_another_machine(field: str, login: str) -> None:
    options = [f"++tracking.{option}" for option in login.replace(": ", "=").split(", ")]
    others = dict.fromkeys(("token_env", "username_env", "password_env"), "null")
    others |= dict(option.split(": ") for option in login.split(", "))
    logins = ", ".join(f"{name}: {value}" for name, value in others.items())
    fields = (
        f"kind: mlflow, uri: '{HTTP}', experiment: e, raw_evidence: false, report: false, "
        f"traces: false, timeout_s: 5.0, allow_http: false, {logins}"
    )
    second = [f"+tracking.also.second={{{fields}}}", "tracking=none"]
    overrides = [f"tracking.uri='{HTTP}'", *options] if field == "tracking.uri" else second
    with pytest.raises(InputError) as raised:
        compose(*overrides)
    assert str(raised.value).startswith(f"{field}: plain http reaches another machine")


def test_the_walk_finds_what_it_should() -> None:
    assert set(GUARDED) <= set(addresses_with_keys())


@pytest.mark.parametrize("key_env", ["KEY", "null"])
def test_llama_cpp_asks_for_allow_http(key_env: str) -> None:
    words = (
        "backend=llama_cpp",
        f"backend.server.base_url={HTTP}",
        f"backend.server.key_env={key_env}",
    )
    with pytest.raises(InputError, match=r"^backend\.server\.base_url: plain http .*allow_http"):
        compose(*words)
    allowed = compose(*words, "backend.server.allow_http=true").backend
    assert isinstance(allowed, LlamaCppBackend)
    assert allowed.server.base_url == HTTP


WITH_PASSWORDS = [
    "postgresql://me:hunter2@host/db",
    "postgresql://me:@host/db?x=hunter2",
    "postgresql://:hunter2@host/db",
    "postgresql://me:hun/ter2@host/db",
    "postgresql://me:1/hunter2@host/db",
    "postgresql://me:hunter2@x@host/db",
    "postgresql://me%3Ahunter2@host/db",
    "postgresql://host/db?user=me&password=hunter2",
    "postgresql://host/db?pass%77ord=hunter2",
    "postgresql://host/db?pass%2577ord=hunter2",
    "postgresql://host/db?PASSWORD=hunter2",
    "postgresql://host/db?a=b;password=hunter2",
    "postgresql://host/db?sslpassword=hunter2",
    "postgresql://host/db#password=hunter2",
    "mysql://host/db?passwd=hunter2",
    "mssql://host/?odbc_connect=UID%3Dme%3BPWD%3Dhunter2",
    "https://host/?access_token=hunter2",
    "https://host/?api-key=hunter2",
    "https://host/?sig=hunter2",
]


@pytest.mark.parametrize("url", WITH_PASSWORDS)
def test_a_password_in_an_address_is_found_however_it_is_spelled(url: str) -> None:
    assert holds_password(url)


@pytest.mark.parametrize("url", [one for one in WITH_PASSWORDS if "x=hunter2" not in one])
def test_a_password_in_an_address_is_not_shown(url: str) -> None:
    shown = redacted(f"could not connect to {url} at all, nor to {url}")
    assert shown.startswith("could not connect to ")
    assert shown.count("***") == 2
    assert " at all, nor to " in shown
    for secret in ("hunter2", "ter2"):
        assert secret not in shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@host:5432/db?sslmode=verify-full",
        "postgresql://host/db?passfile=/home/me/.pgpass&sslkey=/home/me/key",
        "postgresql+psycopg:///db?host=/run/postgresql",
        "sqlite:////data/a:b@c/mlflow.db",
        "https://mlflow.example:8443/base",
        "http://[::1]:5000",
        "databricks",
    ],
)
def test_an_address_without_a_password_is_left_as_it_is(url: str) -> None:
    assert not holds_password(url)
    assert redacted(url) == url
