"""judgevet's errors become codes and statuses by their class, whatever their messages say."""

from typing import Any

import pytest

from jevexp.core.decision import Request
from tests.backends.judgevet import made
from tests.backends.judgevet.conftest import Open
from tests.support.bridge import fake_port
from tests.support.tasks import task

REQUEST = Request.of(task("choice"), "m-1")
MESSAGE = "the password is in this message"
MAKE = ("backend.provider=factory", "backend.factory=tests.backends.judgevet.made:make")


def outcome(opened: Open, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Any:
    """Code and status of a provider that raises."""
    port = fake_port(error=error)
    monkeypatch.setattr(made, "PORT", port)
    decision = opened(*MAKE).decide(REQUEST)
    assert not decision.ok
    assert decision.probs is None
    assert MESSAGE not in repr(decision)
    assert len(port.calls) == 1
    return decision.error, decision.status_code


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("JevAuthError", 401, ("http_error", 401)),
        ("JevAuthError", 403, ("http_error", 403)),
        ("JevRateLimitError", 429, ("http_error", 429)),
        ("JevRequestError", 422, ("http_error", 422)),
        ("JevMaxTokensExceededError", 400, ("context_overflow", 400)),
        ("JevServiceError", 503, ("http_error", 503)),
        ("JevServiceError", None, ("connection_failed", None)),
        ("JevResponseError", 200, ("bad_response", 200)),
        ("JevError", None, ("provider_error", None)),
        ("JevError", 302, ("http_error", 302)),
    ],
)
def test_an_error_of_the_service_has_its_own_status(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    status: int | None,
    expected: tuple[str, int | None],
) -> None:
    import judgevet

    error = getattr(judgevet, name)(MESSAGE, status)
    assert outcome(opened, monkeypatch, error) == expected


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ProviderBusyError", "provider_busy"),
        ("ProviderUnavailableError", "provider_unavailable"),
        ("ProviderCapabilityError", "capability_missing"),
        ("ProviderRequestError", "request_refused"),
        ("ProviderTransportError", "connection_failed"),
        ("ProviderResponseError", "bad_response"),
        ("ProviderError", "provider_error"),
    ],
)
def test_an_error_of_a_provider_has_none(
    opened: Open, monkeypatch: pytest.MonkeyPatch, name: str, code: str
) -> None:
    from judgevet import providers

    error = getattr(providers, name)(MESSAGE)
    assert outcome(opened, monkeypatch, error) == (code, None)


@pytest.mark.parametrize("name", ["ProviderRequestError", "ProviderTransportError"])
def test_the_status_behind_a_providers_error_is_carried(
    opened: Open, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from judgevet import providers
    from typevet.domain.errors import BackendHttpError

    error = getattr(providers, name)(MESSAGE)
    error.__cause__ = BackendHttpError(MESSAGE, status_code=429, body_snippet=MESSAGE)
    assert outcome(opened, monkeypatch, error) == ("http_error", 429)


def test_a_timeout_behind_an_error_is_one(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    from judgevet.providers import ProviderTransportError

    error = ProviderTransportError(MESSAGE)
    error.__cause__ = RuntimeError()
    error.__cause__.__cause__ = TimeoutError()
    assert outcome(opened, monkeypatch, error) == ("timeout", None)


def test_an_undeclared_exception_is_passed_on(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "PORT", fake_port(error=ZeroDivisionError(MESSAGE)))
    with pytest.raises(ZeroDivisionError):
        opened(*MAKE).decide(REQUEST)


def test_a_request_too_long_for_the_service_is_told_apart(opened: Open) -> None:
    from tests.support.scripted_llama import Answer, scripted_llama

    with scripted_llama() as server:
        refusal = {"detail": {"error_type": "max_tokens_exceeded"}}
        server.answers["/v1/systemone"] = Answer(refusal, status=400)
        backend = opened("backend.key_env=null", f"backend.base_url={server.url}")
        decision = backend.decide(REQUEST)
    assert (decision.error, decision.status_code) == ("context_overflow", 400)
