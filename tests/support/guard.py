"""A server in front of another one that lets nobody through without the right login."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

# What belongs to one connection only.
_OWN = {"connection", "transfer-encoding", "content-length", "server", "date", "host"}


@dataclass
class Guard:
    """Where the guard is, and how often it let somebody through or not, by method."""

    uri: str = ""
    passed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@contextmanager
def guarded(upstream: str, login: str | None, *, port: int = 0) -> Iterator[Guard]:
    """Pass on what carries this `Authorization` header, and refuse all else but `/health`.

    With None whoever sends none is let through.
    """
    guard = Guard()
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(guard, upstream, login))
    guard.uri = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield guard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(guard: Guard, upstream: str, login: str | None) -> type[BaseHTTPRequestHandler]:
    netloc = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path != "/health" and self.headers.get("Authorization") != login:
                guard.refused.append(self.command)
                self._answer(401, {}, b"no entry")
                return
            guard.passed.append(self.command)
            connection = http.client.HTTPConnection(netloc, timeout=60)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _OWN}
            # The login is between the caller and this server.
            headers.pop("Authorization", None)
            connection.request(self.command, self.path, body or None, headers)
            reply = connection.getresponse()
            self._answer(reply.status, dict(reply.getheaders()), reply.read())
            connection.close()

        def do_GET(self) -> None:
            self._pass_on()

        def do_POST(self) -> None:
            self._pass_on()

        def do_PUT(self) -> None:
            self._pass_on()

        def do_PATCH(self) -> None:
            self._pass_on()

        def do_DELETE(self) -> None:
            self._pass_on()

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in _OWN:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
