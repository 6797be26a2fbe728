"""Models on OpenAI-compatible servers: written probabilities, and next-token probabilities."""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from jevexp.settings.base import Model
from jevexp.settings.http import HttpBackend


class OpenAIBackend(HttpBackend):
    """Base of these providers' settings; `/v1/…` is added to `base_url`.

    `options` become fields of every request that is read, and the fields that `remove` names are
    left out of it.
    """

    options: dict[str, Any]
    remove: tuple[str, ...]

    # What the answer could not be read without.
    reserved: ClassVar[frozenset[str]] = frozenset({"model", "messages", "prompt", "stream", "n"})

    @model_validator(mode="after")
    def _leaves_the_rest_alone(self) -> Self:
        if self.base_url is not None and self.base_url.rstrip("/").endswith("/v1"):
            raise ValueError("base_url: ends in /v1, which is added; leave it out")
        self._check("options", self.options)
        self._check("remove", self.remove)
        return self

    def _check(self, field: str, names: Iterable[str]) -> None:
        if taken := sorted(self.reserved & set(names)):
            raise ValueError(f"{field}: {taken[0]} is set here; leave it out")


class OpenAIChatBackend(OpenAIBackend):
    """Verbalized probabilities; an answer is at most `max_tokens` long."""

    kind: Literal["openai_chat"]
    max_tokens: Annotated[int, Field(ge=1)]


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
