"""A local HTTP server that answers like llama-server, except where a test says otherwise."""

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "scripted"
# Control tokens, the two words, then any character.
_TOKEN = re.compile(r"(?P<control><\|\w+\|>)|(?P<word>yes|no)|.", re.DOTALL)
_IDS = {"<|im_start|>": 1_200_001, "<|im_end|>": 1_200_002, "yes": 1_200_003, "no": 1_200_004}


@dataclass(frozen=True)
class Answer:
    """One HTTP answer; `hang` waits until the test is over, `drop` closes without a word."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    drop: bool = False
    drip_s: float = 0.0


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


Behaviour = Answer | Callable[[Any], Answer]


class ScriptedLlama:
    """`answers` maps a path to what replaces the default behaviour; `seen` lists requests."""

    def __init__(self) -> None:
        self.answers: dict[str, Behaviour] = {}
        self.seen: list[Seen] = []
        self.over = threading.Event()
        self.url = ""

    def paths(self) -> list[str]:
        """The paths asked for, in order."""
        return [request.path for request in self.seen]

    def answer(self, path: str, body: Any) -> Answer:
        """The behaviour for one request."""
        behaviour = self.answers.get(path, _DEFAULTS.get(path, Answer(status=404)))
        return behaviour if isinstance(behaviour, Answer) else behaviour(body)


class _Server(ThreadingHTTPServer):
    # Connections that stay open must not hold up the end of a test.
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients that hang up are what some tests are about."""


@contextmanager
def scripted_llama(tls: ssl.SSLContext | None = None) -> Iterator[ScriptedLlama]:
    """A running server; its port is free again afterwards."""
    script = ScriptedLlama()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise head and body, being two packets, wait for each other.
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._serve(None)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            self._serve(json.loads(raw))

        def _serve(self, body: Any) -> None:
            script.seen.append(Seen(self.command, self.path, dict(self.headers), body))
            answer = script.answer(self.path, body)
            if answer.hang:
                script.over.wait(30)
            if answer.hang or answer.drop:
                self.close_connection = True
                return
            try:
                self._send(answer)
            except OSError:
                # The client gave up, which some tests are about.
                self.close_connection = True

        def _send(self, answer: Answer) -> None:
            raw = (
                answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            )
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(raw)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if not answer.drip_s:
                self.wfile.write(raw)
                return
            for byte in raw:
                if script.over.wait(answer.drip_s):
                    return
                self.wfile.write(bytes([byte]))

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_port}"
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        script.url = f"https://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        script.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def tokens(text: str, *, special: bool = True) -> list[int]:
    """What the scripted server's tokenizer makes of a text."""
    found = []
    for match in _TOKEN.finditer(text):
        piece = match.group()
        if match["word"] or (match["control"] and special):
            found.append(_IDS.get(piece, 1_200_000))
        else:
            found.extend(ord(character) for character in piece)
    return found


def completion(body: Mapping[str, Any], probabilities: Mapping[int, float]) -> dict[str, Any]:
    """A `/completion` answer with these probabilities."""
    listed = [{"id": token, "prob": value} for token, value in probabilities.items()]
    return {
        "model": MODEL,
        "content": "x",
        "tokens_evaluated": len(tokens(body["prompt"])),
        "tokens_predicted": 1,
        "timings": {"prompt_ms": 1.5},
        "completion_probabilities": [{"id": 1, "top_probs": listed}],
    }


def _template(body: Any) -> Answer:
    turns = "".join(
        f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in body["messages"]
    )
    return Answer({"prompt": f"{turns}<|im_start|>assistant\n"})


def _tokenize(body: Any) -> Answer:
    return Answer({"tokens": tokens(body["content"], special=body["parse_special"])})


def _complete(body: Any) -> Answer:
    """The candidates get 1, 2, 3 … shares of 0.99."""
    ids = [token for token, _ in body["logit_bias"]]
    whole = len(ids) * (len(ids) + 1) / 2
    shares = {token: 0.99 * (index + 1) / whole for index, token in enumerate(ids)}
    return Answer(completion(body, shares))


_DEFAULTS: dict[str, Behaviour] = {
    "/health": Answer({"status": "ok"}),
    "/v1/models": Answer(
        {"data": [{"id": MODEL, "meta": {"ftype": "Q4_K - Medium", "n_params": 5, "n_ctx": 64}}]}
    ),
    "/props": Answer(
        {
            "build_info": "b1-abc",
            "model_alias": MODEL,
            "model_path": "/models/scripted.gguf",
            "total_slots": 4,
            "chat_template": "{{ messages }}",
            "modalities": {"vision": False},
            "default_generation_settings": {"n_ctx": 32},
        }
    ),
    "/apply-template": _template,
    "/tokenize": _tokenize,
    "/completion": _complete,
}
