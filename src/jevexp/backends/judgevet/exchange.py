"""The transport below the bridge's HTTP clients, and what its errors are called."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from jevexp.backends.bodies import error_body_code, kept_headers, parsed, unpacked, unreadable
from jevexp.backends.transport import broken, name_or_none
from jevexp.core.json import loads
from jevexp.errors import InputError
from jevexp.untrusted.http import BoundedTransport, Bounds
from jevexp.untrusted.secrets import Secrets

# A llama.cpp server lists its whole vocabulary for typevet: 30 MB for Gemma's.
_MOST_BYTES = 64 << 20
# Longer bodies are in evidence by their length and their hash.
_MOST_KEPT = 64 << 10
# Headers that no longer fit a body that was unpacked.
_OF_THE_WIRE = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
# We sent no key in a body.
_NO_SECRETS = Secrets([])


@dataclass(slots=True)
class Exchange:
    """One request and what came of it; `failure` is a safe code where no whole answer came."""

    endpoint: str
    sent: bytes
    status: int | None = None
    received: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None

    def sent_json(self) -> dict[str, Any]:
        """What was sent, as evidence."""
        body, _ = _kept(self.sent, "application/json", _NO_SECRETS)
        return {"endpoint": self.endpoint, "body": body}

    @property
    def error_code(self) -> str | None:
        """The code for an error that came under a status of success, or None."""
        if self.status is None or not 200 <= self.status < 300:
            return None
        try:
            return error_body_code(loads(self.received))
        except ValueError:
            return None

    @property
    def model(self) -> str | None:
        """The model that the answer itself names, or None."""
        try:
            body = loads(self.received)
        except ValueError:
            return None
        return name_or_none(body.get("model")) if isinstance(body, dict) else None

    def received_json(self, secrets: Secrets) -> tuple[dict[str, Any], bool]:
        """What came back, as evidence, and whether a secret was replaced in it."""
        body, repeats_secret = _kept(self.received, self.headers.get("Content-Type"), secrets)
        headers = kept_headers(self.headers, secrets)
        return {"endpoint": self.endpoint, "body": body, "headers": headers}, repeats_secret


class RecordingTransport:
    """A transport for httpx, which typevet uses, or httpx2, which judgevet uses.

    The two have the same shape and different classes, so the `package` itself is an argument. An
    exchange takes `request_s` seconds at most. `exchanges` are in order; whoever asks empties the
    list.
    """

    def __init__(self, package: Any, base_url: str, request_s: float) -> None:
        self._package = package
        self._request_s = request_s
        self._bounds = Bounds()
        try:
            self._inner = BoundedTransport(self._bounds, base_url, package)
        except ValueError as error:
            raise InputError(f"{base_url}: {error}; mend or unset it") from error
        self.exchanges: list[Exchange] = []

    def handle_request(self, request: Any) -> Any:
        """Send `request` once and return the whole answer; the clients call this."""
        package = self._package
        exchange = Exchange(request.url.path, request.read())
        self.exchanges.append(exchange)
        request.headers["Accept-Encoding"] = "identity"
        try:
            with self._bounds.within(self._request_s, _MOST_BYTES) as allowance:
                response = self._inner.handle_request(request)
                exchange.status = response.status_code
                exchange.headers = response.headers
                self._read(response, exchange)
        except package.TimeoutException:
            exchange.failure = "timeout"
            raise
        except package.RemoteProtocolError as error:
            exchange.failure = "connection_failed"
            # typevet sends a request again after this error, and after no other.
            raise package.ReadError(str(error), request=request) from error
        except package.TransportError as error:
            code = "response_too_large" if allowance.exceeded else broken(error)[0]
            exchange.failure = exchange.failure or code
            raise
        return package.Response(
            response.status_code,
            headers=[pair for pair in response.headers.raw if pair[0].lower() not in _OF_THE_WIRE],
            content=exchange.received,
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()

    def __enter__(self) -> "RecordingTransport":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _read(self, response: Any, exchange: Exchange) -> None:
        """The whole body, unpacked within the same bound."""
        body = bytearray()
        try:
            for piece in response.stream:
                body += piece
                if len(body) > _MOST_BYTES:
                    exchange.failure = "response_too_large"
                    raise self._package.ReadError("the body is too large")
        finally:
            exchange.received = bytes(body)
            response.close()
        encoding = response.headers.get("Content-Encoding", "")
        content = unpacked(exchange.received, encoding, _MOST_BYTES)
        if len(content) > _MOST_BYTES:
            exchange.failure = "response_too_large"
            raise self._package.ReadError("the body is too large")
        exchange.received = content


def _kept(raw: bytes, content_type: str | None, secrets: Secrets) -> tuple[Any, bool]:
    """A body as evidence, and whether a secret was replaced in it."""
    if len(raw) > _MOST_KEPT:
        kept: dict[str, Any] = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
        if not secrets.in_use:
            kept["beginning"] = unreadable(raw, content_type, secrets)
        return kept, False
    try:
        return parsed(raw, secrets)
    except ValueError:
        return unreadable(raw, content_type, secrets), False


def failure_of(error: BaseException, exchange: Exchange | None) -> tuple[str, int | None]:
    """The code and the HTTP status of a `JudgevetError`; None where it has no status.

    `exchange` is the last request and what came of it, where there was one.
    """
    from judgevet import JevError, JevMaxTokensExceededError, JevResponseError, JevServiceError
    from judgevet import providers as p

    if exchange is not None and exchange.failure == "response_too_large":
        return exchange.failure, exchange.status
    # A Jev error has a status itself; behind a provider's error, the cause may have one.
    source = error if isinstance(error, JevError) else error.__cause__
    status = getattr(source, "status_code", None)
    if type(status) is not int or not 100 <= status < 1000:
        status = None
    if isinstance(error, JevServiceError | p.ProviderTransportError) and status is None:
        return _transport_code(error, exchange), None
    # A status says more than the two vaguest codes.
    vague = "http_error" if status is not None else None
    codes: tuple[tuple[Any, str], ...] = (
        (JevMaxTokensExceededError, "context_overflow"),
        (JevResponseError, "bad_response"),
        (p.ProviderBusyError, "provider_busy"),
        (p.ProviderUnavailableError, "provider_unavailable"),
        (p.ProviderCapabilityError, "capability_missing"),
        (p.ProviderResponseError, "bad_response"),
        (p.ProviderRequestError, vague or "request_refused"),
    )
    code = next((code for kind, code in codes if isinstance(error, kind)), None)
    return code or vague or "provider_error", status


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
