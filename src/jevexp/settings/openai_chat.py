"""A model on an OpenAI-compatible server that writes probabilities as text."""

from typing import Annotated, Literal

from pydantic import Field

from jevexp.settings.openai import OpenAIBackend


class OpenAIChatBackend(OpenAIBackend):
    """Verbalized probabilities; an answer is at most `max_tokens` long."""

    kind: Literal["openai_chat"]
    max_tokens: Annotated[int, Field(ge=1)]
