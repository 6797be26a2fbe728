"""A real HTTP server on this machine that publishes one file, well or badly."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jevexp.settings import Dataset, PinnedFile

Answer = Callable[[BaseHTTPRequestHandler, bytes], object]


def task_lines(count: int = 3, prefix: str = "t") -> bytes:
    """A task file with that many tasks."""
    tasks = [
        {
            "id": f"{prefix}{number}",
            "family": "policy",
            "state": "The order is 12 days old. Ünïcode 会.",
            "question": {"type": "noul", "instructions": "Is a refund allowed?"},
            "labels": ["no", "yes"],
            "expected": "yes",
            "split": "public",
        }
        for number in range(count)
    ]
    return "".join(json.dumps(task, ensure_ascii=False) + "\n" for task in tasks).encode()


def pin_of(body: bytes, path: str = "data/tasks.jsonl") -> PinnedFile:
    """What the file's bytes must be."""
    return PinnedFile(
        path=path,
        sha256=hashlib.sha256(body).hexdigest(),
        bytes=len(body),
        tasks=body.count(b"\n"),
    )


def pinned(base_url: str | None, *pins: PinnedFile, **fields: Any) -> Dataset:
    """A pinned dataset that is published at `base_url`."""
    given = {"repository": "someone/benchmark", "commit": "c0ffee", "base_url": base_url} | fields
    return Dataset(name="mini", source="pinned", files=pins, **given)


def whole(request: BaseHTTPRequestHandler, body: bytes) -> None:
    """Answer as a server should."""
    request.send_response(200)
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


@dataclass
class FileServer:
    """`answer` may be replaced at any time; `requests` lists the paths asked for."""

    body: bytes
    url: str = ""
    answer: Answer = whole
    requests: list[str] = field(default_factory=list)
    # Set when the test is over, so that an answer that waits can end.
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def serving(body: bytes) -> Iterator[FileServer]:
    """Serve `body` at every path until the end of the block."""
    server = FileServer(body)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append(self.path)
            # The client may have had enough.
            with suppress(BrokenPipeError, ConnectionResetError):
                server.answer(self, server.body)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        # The default of half a second would be most of a test's time.
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            http.shutdown()
            thread.join()
