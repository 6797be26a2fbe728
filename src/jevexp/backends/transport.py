"""One HTTP exchange with a provider: bounded in time and size, never repeated."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeGuard

import httpx

from jevexp.core.json import dumps, loads
from jevexp.errors import InputError
from jevexp.untrusted.http import Bounds, bounded_client
from jevexp.untrusted.secrets import Secrets

MOST_BYTES = 8 << 20
# What is kept of an answer's headers: who has it in the logs, what it cost, why it is none.
KEPT_HEADERS = (
    "content-encoding",
    "location",
    "openai-request-id",
    "request-id",
    "retry-after",
    "x-litellm-call-id",
    "x-litellm-response-cost",
    "x-request-id",
)
_MOST_HEADER = 300


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

    `headers` are those of `KEPT_HEADERS` that came with it.
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
                headers = kept_headers(response.headers, self._secrets)
                for piece in response.iter_raw():
                    raw += piece
                    if len(raw) > MOST_BYTES:
                        break
        except httpx.TimeoutException as error:
            raise Failure("timeout") from error
        except httpx.TransportError as error:
            code = "response_too_large" if allowance.exceeded else "connection_failed"
            raise Failure(code) from error
        whole = len(raw) <= MOST_BYTES
        try:
            body, repeats_secret = parsed(bytes(raw), self._secrets) if whole else (None, False)
        except ValueError:
            body, repeats_secret = None, False
        shown = body
        if not isinstance(body, dict):
            shown = unreadable(bytes(raw), content_type, self._secrets)
        evidence = _evidence(path, shown, headers)
        if not 200 <= status < 300:
            raise Failure(self._code_of(body), status, evidence)
        if not whole:
            raise Failure("response_too_large", status, evidence)
        # An answer with a part replaced is not the one that was given.
        if not isinstance(body, dict) or repeats_secret:
            raise Failure("bad_response", status, evidence)
        return Reply(status, body, headers)


# Enough of a body that is not what was expected to see what it was.
_EXCERPT_BYTES = 2000
# A header may hold a secret too: only these are shown.
_KNOWN_TYPES = frozenset(
    f"application/{name}" for name in ("json", "octet-stream", "problem+json", "x-ndjson", "xml")
) | {"text/event-stream", "text/html", "text/plain", "text/xml"}


def kept_headers(headers: Mapping[str, str], secrets: Secrets) -> dict[str, str]:
    """The headers of `KEPT_HEADERS`, by lower-case name: cut, and without any secret."""
    return {
        name: secrets.without(headers[name])[:_MOST_HEADER]
        for name in KEPT_HEADERS
        if name in headers
    }


def parsed(raw: bytes, secrets: Secrets) -> tuple[Any, bool]:
    """A body as JSON in which no secret is left, and whether there was one.

    Raises ValueError where it is no JSON, or a secret is spread over it.
    """
    body = loads(raw)
    if not secrets.in_use:
        return body, False
    kept = secrets.without(body)
    if secrets.spread_over(dumps(kept)):
        raise ValueError("a secret is spread over it")
    return kept, kept != body


def unreadable(raw: bytes, content_type: str | None, secrets: Secrets) -> Any:
    """A body that is no JSON, or not whole.

    Its beginning where no secret is in use. Otherwise what can be said of it without showing any:
    there is no end of ways in which a secret could be spelled in bytes that nobody understands.
    """
    if not secrets.in_use:
        return raw[:_EXCERPT_BYTES].decode(errors="replace")
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return {
        "withheld": "it could hold the key",
        "bytes": len(raw),
        "content_type": media_type if media_type in _KNOWN_TYPES else None,
        "sha256": hashlib.sha256(raw).hexdigest(),
    }
