"""A scripted System One service, and settings and questions for tests of the provider."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jevexp.settings import SystemOneBackend
from tests.support.scripted_llama import Answer, ScriptedLlama, scripted_llama

ENDPOINT = "/v1/systemone"
MODEL = "scripted-1.0"
SPARROW = ["sparrow-decider", "serve", "--port", "{port}"]
LAYA = ["laya-serve", "--host", "127.0.0.1", "--port", "{port}"]


def settings(
    base_url: str | None = None, *, command: Any = None, **fields: Any
) -> SystemOneBackend:
    """The settings of conf/backend/systemone.yaml without address and key, with changes."""
    return SystemOneBackend.of(
        {
            "kind": "systemone",
            "name": "systemone",
            "base_url": base_url,
            "key_env": None,
            "header_env": {},
            "allow_http": False,
            "connect_timeout_s": 5.0,
            "timeout_s": 60.0,
            "server": {"command": command, "start_timeout_s": 60.0},
            **fields,
        }
    )


@contextmanager
def scripted_systemone(tls: ssl.SSLContext | None = None) -> Iterator[ScriptedLlama]:
    """A running service that hides what it need not have, as hosted ones do."""
    with scripted_llama(tls) as server:
        server.answers = {
            "/health": Answer({"detail": "Not Found"}, status=404),
            "/v1/models": Answer({"detail": "Not Found"}, status=404),
            ENDPOINT: respond,
        }
        yield server


def respond(body: Mapping[str, Any]) -> Answer:
    """A good answer, or what such services say to a choice without criteria."""
    question = body["questions"]["decision"]
    if question["type"] != "noul" and not question.get("criteria"):
        return Answer({"detail": [{"type": "missing"}]}, status=422)
    return Answer(envelope(good(question)))


def envelope(answer: Any) -> dict[str, Any]:
    """A whole body around an answer."""
    return {
        "model": MODEL,
        "usage": {"input_tokens": 12, "output_tokens": 2},
        "answers": {"decision": answer},
    }


def good(question: Mapping[str, Any]) -> dict[str, Any]:
    """An answer to a question; later options are likelier."""
    if question["type"] == "noul":
        return {"type": "noul", "noul": 0.75}
    criteria = question["criteria"]
    names = list(criteria) if isinstance(criteria, dict) else [*map(str, range(len(criteria)))]
    whole = len(names) * (len(names) + 1) / 2
    probabilities = {name: (index + 1) / whole for index, name in enumerate(names)}
    if question["type"] == "choice":
        return {
            "type": "choice",
            "choice": names[-1],
            "confidence": 0.5,
            "probabilities": probabilities,
        }
    return {
        "type": "score",
        "score": 1.5,
        "confidence": 0.5,
        "legend": dict(zip(names, criteria, strict=True)),
        "probabilities": probabilities,
    }
