"""A limit for a whole HTTP exchange; the limits of HTTP clients are for each single read.

A server that sends a byte of a header now and then would otherwise be waited for without end.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# What a client waits once the time is over: it then raises its own error for a timeout.
_OVER_S = 0.001


class Deadline:
    """When the exchange of this thread has to be over; each thread has its own."""

    def __init__(self) -> None:
        self._here = threading.local()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Allow this many seconds for everything that happens inside."""
        self._here.at = time.monotonic() + seconds
        try:
            yield
        finally:
            del self._here.at

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        left = self.left_s
        return left is not None and left <= 0

    @property
    def left_s(self) -> float | None:
        """The seconds that are left; None outside of `within`."""
        at = getattr(self._here, "at", None)
        return None if at is None else at - time.monotonic()

    def bound_client(self, client: Any) -> None:
        """Make all connections of an `httpx.Client` keep to the deadline."""
        self.bound_transports([client._transport, *client._mounts.values()])

    def bound_transports(self, transports: Iterable[Any]) -> None:
        """Make all connections of these HTTP transports of httpx keep to the deadline.

        httpx has no setting for what its connections are made by.
        """
        for transport in transports:
            if transport is not None:
                pool = transport._pool
                pool._network_backend = _Network(pool._network_backend, self)

    def cut(self, timeout: float | None) -> float | None:
        """A single step's limit in seconds, at most what is left."""
        left = self.left_s
        if left is None:
            return timeout
        left = max(left, _OVER_S)
        return left if timeout is None else min(timeout, left)


class _Network:
    """Makes connections whose every step ends by the deadline."""

    def __init__(self, inner: Any, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, **options: Any
    ) -> "_Stream":
        stream = self._inner.connect_tcp(host, port, self._deadline.cut(timeout), **options)
        return _Stream(stream, self._deadline)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Stream:
    """One connection."""

    def __init__(self, inner: Any, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = self._inner.read(max_bytes, self._deadline.cut(timeout))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.cut(timeout))

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> "_Stream":
        stream = self._inner.start_tls(ssl_context, server_hostname, self._deadline.cut(timeout))
        return _Stream(stream, self._deadline)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
