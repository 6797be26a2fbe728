"""One HTTP exchange with a provider: bounded in time and size, never repeated."""

import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeGuard

import httpx

from jevexp.backends.bodies import error_body_code, kept_headers, parsed, unpacked, unreadable
from jevexp.core.json import dumps
from jevexp.errors import InputError
from jevexp.untrusted.http import Bounds, bounded_client
from jevexp.untrusted.secrets import Secrets

# Why a connection that was made brought nothing.
CLOSED = "it closed the connection without a whole answer"
NO_HTTP = "what answers is no HTTP"
MOST_BYTES = 8 << 20


class Failure(Exception):
    """A request that brought no usable answer.

    `code` is a safe code, which each provider's reference page lists; `status` is the HTTP status,
    where there was one; `evidence` is what came back, as JSON, or None.
    """

    def __init__(self, code: str, status: int | None = None, evidence: Any = None) -> None:
        super().__init__(code)
        self.code = code
        self.status = status
        self.evidence = evidence


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with a success status and a JSON object as its body.

    `headers` are the kept ones that came with it.
    """

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    def evidence(self, endpoint: str) -> dict[str, Any]:
        """The answer to a request of `endpoint`, as JSON."""
        return _evidence(endpoint, self.body, self.headers)


def _evidence(endpoint: str, body: Any, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"endpoint": endpoint, "body": body, "headers": dict(headers)}


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a part of a body is a number; Python counts true and false among them as well."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def name_or_none(value: Any) -> str | None:
    """A part of a body as a name; None where it is none."""
    return value if isinstance(value, str) and value else None


def total(parts: Iterable[Mapping[str, Any]], count: str) -> int | None:
    """The sum of one token count; None where not all parts have it."""
    counts = [part.get(count) for part in parts]
    known = [number for number in counts if type(number) is int and number >= 0]
    return sum(known) if len(known) == len(counts) else None


class HttpPoster(Protocol):
    """What a request is put to: a connection, or a recording of one."""

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        """POST `body` and receive a JSON object; raises Failure."""


def http_error(_body: Any) -> str:
    """The code for an HTTP error whose body is not looked at."""
    return "http_error"


class Transport:
    """A connection to `base_url` that stays open between requests, until `close`.

    `key` is sent as a bearer token; `headers` are kept as secret as it. Connecting takes
    `connect_s` seconds at most, a whole exchange `request_s`. `code_of` gives the safe code for the
    parsed body of an HTTP error. Raises InputError where the environment names a proxy or
    certificates that cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None,
        connect_s: float,
        request_s: float,
        *,
        headers: Mapping[str, str] | None = None,
        code_of: Callable[[Any], str] = http_error,
    ) -> None:
        self._request_s = request_s
        self._code_of = code_of
        self._secrets = Secrets([key, *(headers or {}).values()])
        authorization = {"Authorization": f"Bearer {key}"} if key else {}
        fixed = {"Accept": "application/json", "Accept-Encoding": "identity", **authorization}
        self._bounds = Bounds()
        timeout = httpx.Timeout(request_s, connect=connect_s)
        try:
            self._client = bounded_client(
                self._bounds, base_url, timeout, {**fixed, **(headers or {})}
            )
        except ValueError as error:
            raise InputError(f"{base_url}: {error}; mend or unset it") from error

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def get(self, path: str) -> Reply:
        """GET a JSON object; raises Failure."""
        return self._exchange("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        """POST `body` and receive a JSON object; raises Failure."""
        return self._exchange("POST", path, dumps(body).encode())

    def _exchange(self, method: str, path: str, content: bytes | None) -> Reply:
        headers = {"Content-Type": "application/json"} if content is not None else {}
        bounds = self._bounds.within(self._request_s, MOST_BYTES)
        raw = bytearray()
        try:
            with (
                bounds as allowance,
                self._client.stream(method, path, content=content, headers=headers) as response,
            ):
                status = response.status_code
                content_type = response.headers.get("Content-Type")
                packed = response.headers.get("Content-Encoding", "identity")
                headers = kept_headers(response.headers, self._secrets)
                for piece in response.iter_raw():
                    raw += piece
                    if len(raw) > MOST_BYTES:
                        break
        except httpx.TimeoutException as error:
            raise Failure("timeout") from error
        except httpx.TransportError as error:
            if allowance.exceeded:
                raise Failure("response_too_large") from error
            code, reason = broken(error)
            evidence = {"endpoint": path, "reason": reason} if reason else None
            raise Failure(code, None, evidence) from error
        content, whole = bytes(raw), len(raw) <= MOST_BYTES
        body: Any = None
        repeats_secret = False
        if whole:
            content = unpacked(content, packed, MOST_BYTES)
            whole = len(content) <= MOST_BYTES
        if whole:
            with suppress(ValueError):
                body, repeats_secret = parsed(content, self._secrets)
        shown = body
        if not isinstance(body, dict):
            shown = unreadable(content, content_type, self._secrets)
        evidence = _evidence(path, shown, headers)
        if not 200 <= status < 300:
            raise Failure(self._code_of(body), status, evidence)
        if not whole:
            raise Failure("response_too_large", status, evidence)
        if of_error := error_body_code(body, self._code_of(body)):
            raise Failure(of_error, status, evidence)
        # An answer with a part replaced is not the one that was given.
        if not isinstance(body, dict) or repeats_secret:
            raise Failure("bad_response", status, evidence)
        return Reply(status, body, headers)


def broken(error: BaseException) -> tuple[str, str | None]:
    """The code for an exchange that broke, and why, in words that are no server's own."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return "certificate_refused", cause.verify_message
        if isinstance(cause, ssl.SSLError):
            return "tls_failed", (cause.reason or "").replace("_", " ").lower() or None
        if isinstance(cause, ConnectionResetError | BrokenPipeError):
            return "connection_failed", CLOSED
        if isinstance(cause, OSError) and cause.strerror:
            return "connection_failed", cause.strerror
        cause = cause.__cause__ or cause.__context__
    if type(error).__name__ != "RemoteProtocolError":
        return "connection_failed", None
    closed = str(error).startswith("Server disconnected")
    return "connection_failed", CLOSED if closed else NO_HTTP
