"""One HTTP exchange with a provider: bounded in time and size, never repeated."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from jevexp.core.json import dumps, loads
from jevexp.untrusted.addresses import is_loopback
from jevexp.untrusted.deadline import Deadline

MOST_BYTES = 8 << 20
# Enough of a body that is not what was expected to see what it was.
_EXCERPT_BYTES = 2000
_SHORTEST_SECRET = 8
# llama-server drops a connection that is idle for 5 s; an older one must not be used again.
_IDLE_S = 2.0


class Failure(Exception):
    """A request that brought no usable answer.

    Attributes:
        code: a safe code; each provider's reference page lists its own.
        status: the HTTP status, where there was one.
        evidence: what came back, as JSON, or None.
    """

    def __init__(self, code: str, status: int | None = None, evidence: Any = None) -> None:
        super().__init__(code)
        self.code = code
        self.status = status
        self.evidence = evidence


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with a success status and a JSON object as its body."""

    status: int
    body: dict[str, Any]


class HttpPoster(Protocol):
    """What a request is put to: a connection, or a recording of one."""

    def post(self, path: str, body: dict[str, Any]) -> Reply:
        """POST `body` and receive a JSON object; raises Failure."""


class Transport:
    """A connection that stays open between requests, used between `open` and `close`.

    Args:
        base_url: where the provider is.
        key: sent as a bearer token; None sends none.
        connect_s: limit for connecting, in seconds.
        request_s: limit for a whole exchange, in seconds.
        headers: further headers, whose values are kept as secret as the key.
        code_of: the safe code for the parsed body of an HTTP error.
    """

    def __init__(
        self,
        base_url: str,
        key: str | None,
        connect_s: float,
        request_s: float,
        *,
        headers: Mapping[str, str] | None = None,
        code_of: Callable[[Any], str] = lambda _body: "http_error",
    ) -> None:
        self._request_s = request_s
        self._code_of = code_of
        further = dict(headers or {})
        # Shorter ones, such as "none" for a server that wants any, occur in honest answers.
        self._secrets = [
            spelling.encode()
            for secret in (key, *further.values())
            if secret and len(secret) >= _SHORTEST_SECRET
            # As it is, and as JSON spells it.
            for spelling in dict.fromkeys((secret, dumps(secret)[1:-1]))
        ]
        own = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if key:
            own["Authorization"] = f"Bearer {key}"
        self._client = httpx.Client(
            base_url=base_url,
            headers={**own, **further},
            timeout=httpx.Timeout(request_s, connect=connect_s),
            limits=httpx.Limits(keepalive_expiry=_IDLE_S),
            follow_redirects=False,
            # A proxy from the environment is for other machines.
            trust_env=not is_loopback(base_url),
        )
        self._deadline = Deadline()
        self._deadline.bound_client(self._client)

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
        try:
            with (
                self._deadline.within(self._request_s),
                self._client.stream(method, path, content=content, headers=headers) as response,
            ):
                status = response.status_code
                raw, whole = self._read(response)
        except httpx.TimeoutException as error:
            raise Failure("timeout") from error
        except httpx.TransportError as error:
            raise Failure("connection_failed") from error
        body = self._parsed(raw) if whole else None
        shown = body if isinstance(body, dict) else self._excerpt(raw)
        evidence = {"endpoint": path, "body": shown}
        if not 200 <= status < 300:
            raise Failure(self._code_of(body), status, evidence)
        if not whole:
            raise Failure("response_too_large", status, evidence)
        if not isinstance(body, dict):
            raise Failure("bad_response", status, evidence)
        return Reply(status, body)

    def _read(self, response: httpx.Response) -> tuple[bytes, bool]:
        """The body, and whether it is all of it."""
        raw = bytearray()
        for piece in response.iter_raw():
            raw += piece
            if len(raw) > MOST_BYTES:
                return bytes(raw), False
            if self._deadline.passed:
                raise httpx.ReadTimeout("the body took too long")
        return bytes(raw), True

    def _parsed(self, raw: bytes) -> Any:
        """The body as JSON; None where it is none, or where it repeats our key."""
        try:
            body = loads(raw)
            spelled = dumps(body).encode()
        except ValueError:
            return None
        return None if self._holds_secret(spelled) else body

    def _holds_secret(self, data: bytes) -> bool:
        return any(secret in data for secret in self._secrets)

    def _excerpt(self, raw: bytes) -> str:
        # Spelled anew where it is JSON, as escapes could hide a secret.
        with suppress(ValueError):
            raw = dumps(loads(raw)).encode()
        for secret in self._secrets:
            raw = raw.replace(secret, b"[key]")
        return raw[:_EXCERPT_BYTES].decode(errors="replace")
