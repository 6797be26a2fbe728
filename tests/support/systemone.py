"""A scripted System One service, and settings and questions for tests of the provider."""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jevexp.settings import DecisionsBackend, SystemOneBackend
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


DECISIONS = "/v1/decisions"


def decisions_settings(base_url: str | None = None, **fields: Any) -> DecisionsBackend:
    """The settings of conf/backend/decisions.yaml without address and key, with changes."""
    common = settings(base_url).model_dump(exclude={"kind", "name", "path", "envelope"})
    return DecisionsBackend.of(
        {**common, "kind": "decisions", "name": "decisions", "path": DECISIONS, **fields}
    )


def decided(question: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of OpenAI's wire to a question of it; later options are likelier."""
    if question["type"] == "predicate":
        return {"type": "predicate", "probability": 0.75}
    if question["type"] == "choice":
        options: list[dict[str, Any]] = [{"value": one["value"]} for one in question["choices"]]
    else:
        levels = enumerate(question["levels"])
        options = [{"value": number, "label": level["label"]} for number, level in levels]
    whole = len(options) * (len(options) + 1) / 2
    return {
        "type": question["type"],
        "confidence": 0.5,
        "probabilities": [
            {**option, "probability": (index + 1) / whole} for index, option in enumerate(options)
        ],
    }


def list_around(answer: Any) -> dict[str, Any]:
    """A whole body of OpenAI's wire around an answer."""
    return {**envelope(None), "answers": [answer]}


def respond_with_decisions(body: Mapping[str, Any]) -> Answer:
    """A good answer, or what the service says to a choice without choices."""
    (question,) = body["questions"]
    if question.get("choices") == [] or question.get("levels") == []:
        error = {"message": "empty", "type": "invalid_request_error", "param": None, "code": None}
        return Answer({"error": error}, status=400)
    return Answer(list_around(decided(question)))


@contextmanager
def scripted_decision_service() -> Iterator[ScriptedLlama]:
    """A running service that speaks OpenAI's wire and hides the rest."""
    with scripted_systemone() as server:
        server.answers[DECISIONS] = respond_with_decisions
        yield server
