"""Models on OpenAI-compatible servers: written probabilities, and next-token probabilities."""

from jevexp.backends.openai.chat import OpenAIChat
from jevexp.backends.openai.logprobs import OpenAILogprobs

__all__ = ["OpenAIChat", "OpenAILogprobs"]
