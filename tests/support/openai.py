"""Settings for tests of the providers on OpenAI-compatible servers."""

from typing import Any

from jevexp.settings import OpenAIChatBackend, OpenAILogprobsBackend

_COMMON: dict[str, Any] = {
    "base_url": None,
    "key_env": None,
    "header_env": {},
    "allow_http": False,
    "connect_timeout_s": 5.0,
    "timeout_s": 120.0,
    "server": {"command": None, "start_timeout_s": 60.0},
    "options": {},
    "remove": (),
}


def chat_settings(**changes: Any) -> OpenAIChatBackend:
    """The settings of conf/backend/openai_chat.yaml, with changes."""
    own = {"kind": "openai_chat", "name": "openai_chat", "max_tokens": 2048}
    return OpenAIChatBackend.model_validate(_COMMON | own | changes)


def logprobs_settings(**changes: Any) -> OpenAILogprobsBackend:
    """The settings of conf/backend/openai_logprobs.yaml, with changes."""
    own = {
        "kind": "openai_logprobs",
        "name": "openai_logprobs",
        "route": None,
        "template": {"kwargs": {"enable_thinking": False}},
        "readout": {"bias": 12.0, "top_logprobs": 64},
    }
    return OpenAILogprobsBackend.model_validate(_COMMON | own | changes)
