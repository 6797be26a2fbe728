"""Which proxy is between us and a provider, and what evidence says of it."""

import pytest

from jevexp.untrusted.addresses import named_proxy, proxy_for

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{SECRET}@proxy.test:3128/path")
    monkeypatch.setenv("NO_PROXY", "inside.test")


def test_a_proxy_is_named_without_its_credentials() -> None:
    assert SECRET in (proxy_for("https://example.org") or "")
    assert named_proxy("https://example.org/v1") == "http://proxy.test:3128"


@pytest.mark.parametrize(
    "url", ["https://inside.test", "https://127.0.0.1:1", "http://localhost", "http://a.b", None]
)
def test_where_there_is_none_none_is_named(url: str | None) -> None:
    assert named_proxy(url) is None


def test_an_address_that_is_none_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{SECRET}@proxy.test:{SECRET}")
    assert named_proxy("https://example.org") == "not an address"
