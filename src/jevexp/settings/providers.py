"""Every provider of decisions, one line each: its settings, and the module that asks it.

A new provider takes its own module, its own settings and one line here. The module has two
functions, which `jevexp.backends.protocol` describes: `make`, the provider itself, and `reader`,
which reads its raw answers again. `Settings` takes whatever stands here as its backend, `kind`
telling the providers apart.
"""

import pkgutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from jevexp.settings.base import BackendSettings


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider, by names, so that one line is all that it takes.

    Attributes:
        settings_class: the class of its settings, as `module:class`.
        module: what asks it; imported only when the provider is used.
    """

    settings_class: str
    module: str

    @property
    def settings(self) -> type[BackendSettings]:
        """The class of its settings."""
        settings: type[BackendSettings] = pkgutil.resolve_name(self.settings_class)
        return settings


PROVIDERS = (
    Provider("jevexp.settings.backends:FakeBackend", "jevexp.backends.fake"),
    Provider("jevexp.settings.backends:LlamaCppBackend", "jevexp.backends.llama_cpp"),
    Provider("jevexp.settings.backends:JudgevetBackend", "jevexp.backends.judgevet"),
    Provider("jevexp.settings.backends:PythonBackend", "jevexp.backends.python_factory"),
    Provider("jevexp.settings.backends:ReplayBackend", "jevexp.backends.replay"),
    Provider("jevexp.settings.backends:SystemOneBackend", "jevexp.backends.systemone"),
    Provider("jevexp.settings.backends:DecisionsBackend", "jevexp.backends.decisions"),
    Provider("jevexp.settings.backends:OpenAIChatBackend", "jevexp.backends.openai.chat"),
    Provider("jevexp.settings.backends:OpenAILogprobsBackend", "jevexp.backends.openai.logprobs"),
)

if TYPE_CHECKING:
    AnyBackend = BackendSettings
else:
    # What a type checker cannot follow: the union of all settings in the list.
    AnyBackend = Annotated[
        Union[tuple(provider.settings for provider in PROVIDERS)],  # noqa: UP007
        Field(discriminator="kind"),
    ]


def provider_of(settings: BackendSettings) -> Provider:
    """The line of the list that these settings belong to."""
    return next(provider for provider in PROVIDERS if type(settings) is provider.settings)
