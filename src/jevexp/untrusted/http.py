"""HTTP with servers that may be hostile: bounded in time and bytes, without cookies or redirects.

HTTP clients limit each single read only: a server that sends a byte of a header now and then, or
one `100 Continue` after another, would be listened to without end.
"""

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import httpcore
import httpx

from jevexp.untrusted.addresses import proxy_for

# What may come before the body: interim answers and headers, of which httpcore itself takes 100 KB.
_MOST_HEAD_BYTES = 256 << 10
# What is sent between two looks at the clock; a larger piece would go out in steps of its own.
_WRITE_BYTES = 16 << 10
# llama-server drops a connection that is idle for 5 s; an older one must not be used again.
_IDLE_S = 2.0
_Renamed = Callable[[Callable[[], Any]], Any]


@dataclass(slots=True)
class Allowance:
    """What is left of one exchange, and whether more came than is taken."""

    ends_at: float
    most_body: int
    left_bytes: int
    exceeded: bool = False

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.ends_at


class Bounds(threading.local):
    """What an exchange of this thread may take; each thread has its own."""

    _allowance: Allowance | None = None

    @contextmanager
    def within(self, seconds: float, most_bytes: int) -> Iterator[Allowance]:
        """Allow so much time, and so many bytes of a body, for the one exchange inside."""
        allowance = Allowance(time.monotonic() + seconds, most_bytes, _MOST_HEAD_BYTES)
        self._allowance = allowance
        try:
            yield allowance
        finally:
            self._allowance = None

    def cut(self, timeout: float | None, over: type[Exception]) -> float | None:
        """A single step's limit in seconds, at most what is left.

        Raises Exception: `over`, when nothing is left.
        """
        if self._allowance is None:
            return timeout
        left = self._allowance.ends_at - time.monotonic()
        if left <= 0:
            raise over("the exchange took too long")
        return left if timeout is None else min(timeout, left)

    def count(self, data: bytes) -> bytes:
        """Take bytes off the allowance; raises httpcore.ReadError when there are too many."""
        if self._allowance is not None:
            self._allowance.left_bytes -= len(data)
            if self._allowance.left_bytes < 0:
                self._allowance.exceeded = True
                raise httpcore.ReadError("the answer is too large")
        return data

    def body_follows(self) -> None:
        """Allow the body, now that its headers have come; twice, since chunks have sizes too."""
        if self._allowance is not None:
            self._allowance.left_bytes = 2 * self._allowance.most_body + _MOST_HEAD_BYTES


class BoundedBackend(httpcore.NetworkBackend):
    """Makes connections whose every step keeps to the bounds."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first of the host's addresses that answers, all within the timeout."""
        options = [] if socket_options is None else list(socket_options)
        ends_at = None if timeout is None else time.monotonic() + timeout
        error: Exception = httpcore.ConnectError("the host has no address")
        addresses = _addresses(host, port)
        for index, address in enumerate(addresses):
            share = None
            if ends_at is not None:
                share = max(0.001, ends_at - time.monotonic()) / (len(addresses) - index)
            limit = self._bounds.cut(share, httpcore.ConnectTimeout)
            try:
                stream = self._inner.connect_tcp(address, port, limit, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failed:
                error = failed
            else:
                return _BoundedStream(stream, self._bounds)
        raise error


class _BoundedStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, bounds: Bounds) -> None:
        self._inner = inner
        self._bounds = bounds

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        limit = self._bounds.cut(timeout, httpcore.ReadTimeout)
        return self._bounds.count(self._inner.read(max_bytes, limit))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITE_BYTES):
            limit = self._bounds.cut(timeout, httpcore.WriteTimeout)
            self._inner.write(buffer[start : start + _WRITE_BYTES], limit)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = self._bounds.cut(timeout, httpcore.ConnectTimeout)
        encrypted = self._inner.start_tls(ssl_context, server_hostname, limit)
        return _BoundedStream(encrypted, self._bounds)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class BoundedTransport(httpx.BaseTransport):
    """A transport for httpx clients, or for those of another package of the same shape.

    Args:
        bounds: what each exchange keeps to.
        url: where the requests go, which decides about the proxy: one that the environment names
            for other machines.
        package: httpx or httpx2; its requests are taken, its responses and errors given.

    Raises ValueError: the environment names a proxy or certificates that cannot be used.
    """

    def __init__(self, bounds: Bounds, url: str, package: ModuleType = httpx) -> None:
        self._bounds = bounds
        self._package = package
        self._stream_type = _stream_type(package)
        self._pool = _pool(bounds, url)

    def handle_request(self, request: Any) -> Any:
        """Send a request; the clients call this."""
        sent = httpcore.Request(
            method=request.method,
            url=_core_url(request.url),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        response = self._renamed(lambda: self._pool.handle_request(sent))
        self._bounds.body_follows()
        return self._package.Response(
            response.status,
            # No cookie is ever kept, or one decision could depend on another.
            headers=[pair for pair in response.headers if pair[0].lower() != b"set-cookie"],
            stream=self._stream_type(self._renamed, response),
            extensions={"http_version": response.extensions["http_version"]},
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _renamed(self, step: Callable[[], Any]) -> Any:
        """Do a step; an error of httpcore becomes the package's error of the same name."""
        try:
            return step()
        except Exception as error:
            name = next((kind.__name__ for kind in type(error).__mro__ if kind in _ERRORS), None)
            if name is None:
                raise
            raise getattr(self._package, name)(str(error)) from error


def bounded_client(
    bounds: Bounds, url: str, timeout: httpx.Timeout, headers: Mapping[str, str] | None = None
) -> httpx.Client:
    """A client for one server.

    Raises ValueError: the environment names a proxy or certificates that cannot be used.
    """
    return httpx.Client(
        base_url=url,
        headers=headers,
        timeout=timeout,
        transport=BoundedTransport(bounds, url),
        follow_redirects=False,
        trust_env=False,
    )


_ERRORS = frozenset((
    httpcore.ConnectTimeout, httpcore.ReadTimeout, httpcore.WriteTimeout, httpcore.PoolTimeout,
    httpcore.ConnectError, httpcore.ReadError, httpcore.WriteError, httpcore.ProxyError,
    httpcore.UnsupportedProtocol, httpcore.LocalProtocolError, httpcore.RemoteProtocolError,
))  # fmt: skip


def _pool(bounds: Bounds, url: str) -> httpcore.ConnectionPool:
    options: dict[str, Any] = {
        "ssl_context": None,
        "max_connections": 100,
        "max_keepalive_connections": 20,
        "keepalive_expiry": _IDLE_S,
        "network_backend": BoundedBackend(bounds),
    }
    if url.startswith("https://"):
        try:
            options["ssl_context"] = httpx.create_ssl_context()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            message = f"the environment names certificates that cannot be used: {reason}"
            raise ValueError(message) from error
    address = proxy_for(url)
    if address is None:
        return httpcore.ConnectionPool(**options)
    try:
        proxy = httpx.Proxy(address)
        socks = proxy.url.scheme.startswith("socks")
        kind = httpcore.SOCKSProxy if socks else httpcore.HTTPProxy
        return kind(proxy_url=_core_url(proxy.url), proxy_auth=proxy.raw_auth, **options)
    except (ValueError, RuntimeError, httpx.InvalidURL) as error:
        # Not shown: it may hold a password.
        raise ValueError("the environment names a proxy that cannot be used") from error


def _core_url(url: Any) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _stream_type(package: ModuleType) -> Callable[[_Renamed, httpcore.Response], Any]:
    """The package's own kind of a body that comes piece by piece."""

    class Pieces(package.SyncByteStream):  # type: ignore[name-defined, misc]
        def __init__(self, renamed: _Renamed, response: httpcore.Response) -> None:
            self._renamed = renamed
            self._response = response

        def __iter__(self) -> Iterator[bytes]:
            pieces = self._response.iter_stream()
            while (piece := self._renamed(lambda: next(pieces, None))) is not None:
                yield piece

        def close(self) -> None:
            self._response.close()

    return Pieces


def _addresses(host: str, port: int) -> list[str]:
    """All of a host's addresses: where the first is dead, a live one still answers."""
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return [host]
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(error) from error
    return list(dict.fromkeys(str(address[0]) for *_, address in resolved))
