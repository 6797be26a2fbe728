"""A System One service whose every answer takes as long as it is told, however many are asked.

    python bench/slow_server.py SECONDS

Prints its port, then serves until it is ended.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECONDS = float(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    """Every option is as likely as every other."""

    protocol_version = "HTTP/1.1"
    # An answer is several writes, which are not to wait for each other's acknowledgement.
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        """Whatever is looked up is not there."""
        self._answer(404, {})

    def do_POST(self) -> None:
        """Answer a decision once its time has passed since it was asked."""
        due = time.perf_counter() + SECONDS
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = asked["questions"]["decision"]
        body = {
            "model": "slow",
            "answers": {"decision": answer(question)},
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        time.sleep(max(0.0, due - time.perf_counter()))
        self._answer(200, body)

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """An answer of the question's type."""
    if question["type"] == "noul":
        return {"type": "noul", "noul": 0.5, "confidence": 0.5}
    criteria = question["criteria"]
    options = (
        [str(level) for level in range(len(criteria))]
        if question["type"] == "score"
        else list(criteria)
    )
    share = 1 / len(options)
    found: dict[str, Any] = {
        "type": question["type"],
        "probabilities": dict.fromkeys(options, share),
        "confidence": share,
    }
    if question["type"] == "score":
        legend = dict(zip(options, criteria, strict=True))
        return found | {"score": 0.5, "legend": legend}
    return found | {"choice": options[0]}


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
