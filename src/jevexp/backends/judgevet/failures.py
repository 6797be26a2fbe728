"""judgevet's errors as safe codes and statuses, by class and never by message."""

from typing import Any

import httpx

from jevexp.backends.judgevet.exchange import Exchange


def failure_of(error: BaseException, exchange: Exchange | None) -> tuple[str, int | None]:
    """The code and the HTTP status of one of judgevet's errors; None where it has no status.

    Args:
        error: a `JudgevetError`.
        exchange: the last request and what came of it, where there was one.
    """
    from judgevet import JevError, JevMaxTokensExceededError, JevResponseError, JevServiceError
    from judgevet.providers import ProviderTransportError

    status = _status(error)
    if exchange is not None and exchange.failure == "response_too_large":
        return exchange.failure, exchange.status
    if isinstance(error, JevMaxTokensExceededError):
        return "context_overflow", status
    if isinstance(error, JevResponseError):
        return "bad_response", status
    if isinstance(error, JevServiceError | ProviderTransportError) and status is None:
        return _transport_code(error, exchange), None
    if isinstance(error, JevError):
        return ("http_error" if status is not None else "provider_error"), status
    return _provider_code(error, status), status


def _provider_code(error: BaseException, status: int | None) -> str:
    from judgevet import providers

    codes: tuple[tuple[Any, str], ...] = (
        (providers.ProviderBusyError, "provider_busy"),
        (providers.ProviderUnavailableError, "provider_unavailable"),
        (providers.ProviderCapabilityError, "capability_missing"),
        (providers.ProviderResponseError, "bad_response"),
        (providers.ProviderRequestError, "request_refused"),
    )
    found = next((code for cls, code in codes if isinstance(error, cls)), "provider_error")
    # A status says more than whose fault it was.
    return "http_error" if status is not None and found in _WITH_STATUS else found


_WITH_STATUS = ("request_refused", "provider_error")


def _transport_code(error: BaseException, exchange: Exchange | None) -> str:
    """The transport's word first: typevet drops the cause where a key is configured."""
    import httpx2

    if exchange is not None and exchange.failure is not None:
        return exchange.failure
    timeouts = (TimeoutError, httpx.TimeoutException, httpx2.TimeoutException)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, timeouts):
            return "timeout"
        cause = cause.__cause__
    return "connection_failed"


def _status(error: BaseException) -> int | None:
    """A Jev error has a status itself; behind a provider's error, the cause may have one."""
    from judgevet import JevError

    of = error if isinstance(error, JevError) else error.__cause__
    status = getattr(of, "status_code", None)
    return status if type(status) is int and 100 <= status < 1000 else None
