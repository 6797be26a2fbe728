"""Settings and questions for tests of the llama.cpp provider."""

from pathlib import Path
from typing import Any

from jevexp.backends.llama_cpp.server import ManagedServer
from jevexp.core.decision import Request
from jevexp.core.task import Question
from jevexp.settings import LlamaCppBackend, ModelIdentity

STATE = "The parcel came a week late, and the box was crushed."


def backend_settings(*, request_timeout_s: float = 120.0, **server: Any) -> LlamaCppBackend:
    """The settings of conf/backend/llama_cpp.yaml, with changes to the server and its patience."""
    return LlamaCppBackend.model_validate(
        {
            "kind": "llama_cpp",
            "name": "llama_cpp",
            "server": {
                "base_url": None,
                "gguf": None,
                "key_env": None,
                "context": 4096,
                # The tests' processes share the cores; threads that wait for each other lose them.
                "threads": 1,
                "slots": 1,
                "cache_type_k": "f16",
                "cache_type_v": "f16",
                "gpu_layers": -1,
                "start_timeout_s": 60.0,
                **server,
            },
            "template": {"kwargs": {"enable_thinking": False}},
            "readout": {"bias": 12.0, "extra_probs": 4},
            "connect_timeout_s": 5.0,
            "request_timeout_s": request_timeout_s,
        }
    )


def open_server(gguf: Path, alias: str) -> ManagedServer:
    """A server as anybody may run one, which asks for no key; not started yet."""
    server = ManagedServer(gguf, alias, backend_settings().server)
    server.key = ""
    return server


def model_identity(**fields: Any) -> ModelIdentity:
    """A model without weights on this machine, unless `fields` say otherwise."""
    return ModelIdentity.model_validate({"name": "tiny", "alias": "tiny-f32", **fields})


def noul(state: Any = STATE) -> Request:
    """A yes-no question."""
    question = Question.model_validate(
        {
            "type": "noul",
            "instructions": "Does the customer complain?",
            "criteria": {"true": "there is a complaint", "false": "there is none"},
        }
    )
    return Request(state, question, "tiny-f32")


def choice(options: int, state: Any = STATE) -> Request:
    """A question with the labels "topic 0", "topic 1" and so on."""
    criteria = {f"topic {index}": f"subject {index}" for index in range(options)}
    question = Question.model_validate(
        {"type": "choice", "instructions": "What is it about?", "criteria": criteria}
    )
    return Request(state, question, "tiny-f32")


def score(levels: int, state: Any = STATE) -> Request:
    """A question for a level of urgency."""
    question = Question.model_validate(
        {
            "type": "score",
            "instructions": "How urgent is it?",
            "criteria": [f"urgency of {level}" for level in range(levels)],
        }
    )
    return Request(state, question, "tiny-f32")
