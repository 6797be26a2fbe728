"""The transport below the bridge's HTTP clients: every request once, bounded, and kept."""

import hashlib
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from jevexp.backends.transport import is_loopback
from jevexp.domain.json import loads

# A llama.cpp server lists its whole vocabulary for typevet: 30 MB for Gemma's.
_MOST_BYTES = 64 << 20
# Longer bodies are in evidence by their beginning and their hash.
_MOST_KEPT = 64 << 10
_EXCERPT_BYTES = 2000


@dataclass(slots=True)
class Exchange:
    """One request and what came of it; `failure` is a safe code where no whole answer came."""

    endpoint: str
    sent: bytes
    status: int | None = None
    received: bytes = b""
    failure: str | None = None

    def sent_json(self) -> dict[str, Any]:
        """What was sent, as evidence."""
        return {"endpoint": self.endpoint, "body": _kept(self.sent)}

    @property
    def model(self) -> str | None:
        """The model that the answer itself names, or None."""
        try:
            body = loads(self.received)
        except ValueError:
            return None
        named = body.get("model") if isinstance(body, dict) else None
        return named if isinstance(named, str) and named else None

    def received_json(self) -> dict[str, Any]:
        """What came back, as evidence."""
        return {"endpoint": self.endpoint, "body": _kept(self.received)}


class OneShot:
    """A transport for httpx, which typevet uses, or httpx2, which judgevet uses.

    The two have the same shape and different classes, so the package itself is an argument.
    `exchanges` are in order; whoever asks empties the list.

    Args:
        package: httpx or httpx2.
        base_url: the server that is asked.
        request_s: limit for a whole exchange, in seconds.
    """

    def __init__(self, package: Any, base_url: str, request_s: float) -> None:
        self._package = package
        self._request_s = request_s
        self._inner = package.HTTPTransport(proxy=_proxy(base_url))
        self.exchanges: list[Exchange] = []

    def handle_request(self, request: Any) -> Any:
        """Send `request` once and return the whole answer; the clients call this."""
        package = self._package
        exchange = Exchange(request.url.path, request.read())
        self.exchanges.append(exchange)
        try:
            response = self._inner.handle_request(request)
            exchange.status = response.status_code
            self._read(response, exchange)
        except package.TimeoutException:
            exchange.failure = "timeout"
            raise
        except package.RemoteProtocolError as error:
            exchange.failure = "connection_failed"
            # typevet sends a request again after this error, and after no other.
            raise package.ReadError(str(error), request=request) from error
        except package.TransportError:
            exchange.failure = exchange.failure or "connection_failed"
            raise
        return package.Response(
            response.status_code,
            headers=response.headers,
            content=exchange.received,
            extensions=response.extensions,
        )

    def close(self) -> None:
        """Close the connections."""
        self._inner.close()

    def __enter__(self) -> "OneShot":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _read(self, response: Any, exchange: Exchange) -> None:
        """The whole body; the timeout of a client is one for each of its pieces."""
        deadline = time.monotonic() + self._request_s
        body = bytearray()
        try:
            for piece in response.stream:
                body += piece
                if len(body) > _MOST_BYTES:
                    exchange.failure = "response_too_large"
                    raise self._package.ReadError("the body is too large")
                if time.monotonic() > deadline:
                    raise self._package.ReadTimeout("the body took too long")
        finally:
            exchange.received = bytes(body)
            response.close()


def _proxy(url: str) -> str | None:
    """The environment's proxy, which a client with a transport of its own does not look for."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    return found if found is None or "://" in found else f"http://{found}"


def _kept(raw: bytes) -> Any:
    """A body as evidence: JSON where it is some, and not all of it where it is long."""
    if len(raw) > _MOST_KEPT:
        return {
            "bytes": len(raw),
            "sha256": hashlib.sha256(raw).hexdigest(),
            "beginning": raw[:_EXCERPT_BYTES].decode(errors="replace"),
        }
    try:
        return loads(raw)
    except ValueError:
        return raw[:_EXCERPT_BYTES].decode(errors="replace")
