"""A way to PostgreSQL that can be cut at a COMMIT, before it arrives or before its answer does."""

import contextlib
import socket
import threading
from typing import Self


class CuttingProxy:
    """Passes bytes on between clients on a port of its own and a server on loopback.

    `cut` is what happens at the next COMMIT: "before" drops it and the connection, "after" lets the
    server do it and drops the connection instead of the answer. While `closed`, nobody gets in.
    """

    def __init__(self, server_port: int) -> None:
        self.cut: str | None = None
        self.closed = False
        self.cuts = 0
        self._server = ("127.0.0.1", server_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._sockets: list[socket.socket] = [self._listener]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        for one in list(self._sockets):
            _close(one)
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.closed:
                    client.close()
                    continue
                upstream = socket.create_connection(self._server)
                self._sockets += [client, upstream]
                thread = threading.Thread(target=self._pass, args=(client, upstream), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass(self, client: socket.socket, upstream: socket.socket) -> None:
        """One exchange after the other; PostgreSQL answers only what it was asked."""
        answers = threading.Thread(target=_pump, args=(upstream, client), daemon=True)
        answers.start()
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self.cut and b"COMMIT" in data:
                    cut, self.cut = self.cut, None
                    self.cuts += 1
                    _close(client)
                    if cut == "after":
                        upstream.sendall(data)
                        # Terminate comes after the commit, which the server does first.
                        upstream.sendall(b"X\0\0\0\4")
                        answers.join(10)
                    break
                upstream.sendall(data)
        _close(upstream)
        _close(client)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            with contextlib.suppress(OSError):
                target.sendall(data)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
