"""A model on an OpenAI-compatible server whose next-token probabilities are read."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from jevexp.settings.base import Model
from jevexp.settings.openai import OpenAIBackend


class LogprobsTemplate(Model):
    """Options for the server's own chat template."""

    kwargs: dict[str, Any]


class LogprobsReadout(Model):
    """How the distribution is read.

    `bias` is added to every candidate's logit where the server's probabilities know of it;
    `top_logprobs` is how many tokens the server is asked to list, where it agrees to so many.
    """

    bias: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
    top_logprobs: Annotated[int, Field(ge=2, le=1000)]


class OpenAILogprobsBackend(OpenAIBackend):
    """One next-token distribution a decision, as far as the server shows it.

    `route` null: completions where the server renders its chat template, else chat.
    """

    kind: Literal["openai_logprobs"]
    route: Literal["chat", "completions"] | None
    template: LogprobsTemplate
    readout: LogprobsReadout

    reserved: ClassVar[frozenset[str]] = OpenAIBackend.reserved | {
        "logprobs",
        "top_logprobs",
        "logit_bias",
        "temperature",
    }
