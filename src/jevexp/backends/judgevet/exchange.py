"""The transport below the bridge's HTTP clients: every request once, bounded, and kept."""

import hashlib
from dataclasses import dataclass
from typing import Any

from jevexp.backends.proxy import proxy_for
from jevexp.core.json import loads
from jevexp.untrusted.deadline import Deadline

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
        self._inner = package.HTTPTransport(proxy=proxy_for(base_url))
        self._deadline = Deadline()
        self._deadline.bound_transports([self._inner])
        self.exchanges: list[Exchange] = []

    def handle_request(self, request: Any) -> Any:
        """Send `request` once and return the whole answer; the clients call this."""
        package = self._package
        exchange = Exchange(request.url.path, request.read())
        self.exchanges.append(exchange)
        request.headers["Accept-Encoding"] = "identity"
        try:
            with self._deadline.within(self._request_s):
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
        """The whole body, which is not unpacked: a small one could become a huge one."""
        body = bytearray()
        try:
            if response.headers.get("Content-Encoding", "identity") != "identity":
                exchange.failure = "bad_response"
                raise self._package.ReadError("the body is packed")
            for piece in response.stream:
                body += piece
                if len(body) > _MOST_BYTES:
                    exchange.failure = "response_too_large"
                    raise self._package.ReadError("the body is too large")
                if self._deadline.passed:
                    raise self._package.ReadTimeout("the body took too long")
        finally:
            exchange.received = bytes(body)
            response.close()


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
