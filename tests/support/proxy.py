"""A proxy in front of real servers: it routes by model, and remembers what passed."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx


@dataclass
class Proxy:
    """Where the proxy is, and the path and model of every request that it passed on."""

    url: str
    passed: list[tuple[str, str | None]] = field(default_factory=list)

    def paths(self) -> set[str]:
        """The paths that were asked for."""
        return {path for path, _ in self.passed}


@contextmanager
def proxying(upstreams: Mapping[str, str]) -> Iterator[Proxy]:
    """Serve models by name, each at its own upstream address.

    With one upstream every request goes there. With several, `/v1/models` lists all of them and
    any other request has to name its model, as llama.cpp's own router wants it.
    """
    with httpx.Client(timeout=120, trust_env=False) as client:
        proxy = Proxy("")
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy, dict(upstreams), client))
        proxy.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _handler(
    proxy: Proxy, upstreams: dict[str, str], client: httpx.Client
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body in one packet, or each answer waits for a delayed acknowledgement.
        wbufsize = -1

        def do_GET(self) -> None:
            path = urlsplit(self.path)
            model = parse_qs(path.query).get("model", [None])[0]
            proxy.passed.append((path.path, model))
            if len(upstreams) > 1 and path.path == "/health":
                self._answer(200, {"status": "ok"})
            elif len(upstreams) > 1 and path.path == "/v1/models":
                self._answer(200, {"data": [{"id": name} for name in upstreams]})
            else:
                self._forward("GET", path.path, model, None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            model = json.loads(body).get("model")
            proxy.passed.append((self.path, model))
            self._forward("POST", self.path, model, body)

        def _forward(self, method: str, path: str, model: str | None, body: bytes | None) -> None:
            upstream = (
                next(iter(upstreams.values()))
                if len(upstreams) == 1
                else upstreams.get(model or "")
            )
            if upstream is None:
                self._answer(400, {"error": {"message": "model name is missing or unknown"}})
                return
            kind = {"Content-Type": "application/json"} if body is not None else {}
            reply = client.request(method, upstream + path, content=body, headers=kind)
            self._answer(reply.status_code, reply.json())

        def _answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
