"""One HTTP exchange with a llama.cpp server: bounded in time and size, never repeated."""

import ipaddress
import time
from dataclasses import dataclass
from typing import Any

import httpx

from jevexp.domain.json import dumps, loads

MOST_BYTES = 8 << 20
# Enough of a body that is not what was expected to see what it was.
_EXCERPT_BYTES = 2000
_SHORTEST_SECRET = 8
# llama-server drops a connection that is idle for 5 s; an older one must not be used again.
_IDLE_S = 2.0


class Failure(Exception):
    """A request that brought no usable answer.

    Attributes:
        code: a safe code from docs/reference/llama-cpp.md.
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


class Transport:
    """A connection that stays open between requests, used between `open` and `close`."""

    def __init__(self, base_url: str, key: str | None, connect_s: float, request_s: float) -> None:
        self._request_s = request_s
        # Shorter ones, such as "none" for a server that wants any, occur in honest answers.
        self._secret = key.encode() if key and len(key) >= _SHORTEST_SECRET else None
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._client = httpx.Client(
            base_url=base_url,
            headers=headers,
            timeout=httpx.Timeout(request_s, connect=connect_s),
            limits=httpx.Limits(max_connections=1, keepalive_expiry=_IDLE_S),
            follow_redirects=False,
            # A proxy from the environment is for other machines.
            trust_env=not is_loopback(base_url),
        )

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
            with self._client.stream(method, path, content=content, headers=headers) as response:
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
            raise Failure(_refusal(body), status, evidence)
        if not whole:
            raise Failure("response_too_large", status, evidence)
        if not isinstance(body, dict):
            raise Failure("bad_response", status, evidence)
        return Reply(status, body)

    def _read(self, response: httpx.Response) -> tuple[bytes, bool]:
        """The body, and whether it is all of it; the timeout bounds the whole of it."""
        deadline = time.monotonic() + self._request_s
        raw = bytearray()
        for piece in response.iter_raw():
            raw += piece
            if len(raw) > MOST_BYTES:
                return bytes(raw), False
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout("the body took too long")
        return bytes(raw), True

    def _parsed(self, raw: bytes) -> Any:
        """The body as JSON; None where it is none, or where it repeats our key."""
        try:
            body = loads(raw)
        except ValueError:
            return None
        if self._secret and self._secret in dumps(body).encode():
            return None
        return body

    def _excerpt(self, raw: bytes) -> str:
        if self._secret:
            raw = raw.replace(self._secret, b"[key]")
        return raw[:_EXCERPT_BYTES].decode(errors="replace")


def is_loopback(url: str) -> bool:
    """Whether a URL names this machine."""
    host = httpx.URL(url).host
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refusal(body: Any) -> str:
    """The code for an HTTP error; llama.cpp says in `error.type` when a prompt is too long."""
    error = body.get("error") if isinstance(body, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    return "context_overflow" if kind == "exceed_context_size_error" else "http_error"
