"""The composed configuration as one frozen, validated object.

Hydra and OmegaConf stop above here: everything else reads these models. Every key is listed, an
unknown one is refused, and a secret appears only as the name of the environment variable that
holds it. One file a group, and one a provider.
"""

from jevexp.settings.base import (
    BackendSettings,
    CacheType,
    EnvironmentVariable,
    Model,
    Name,
    Seconds,
    Sha256,
    Usd,
)
from jevexp.settings.dataset import Dataset, PinnedFile
from jevexp.settings.fake import FakeBackend
from jevexp.settings.http import HttpBackend, ServerCommand
from jevexp.settings.judgevet import JudgevetBackend, TypevetSession
from jevexp.settings.llama_cpp import LlamaCppBackend, LlamaReadout, LlamaServer, LlamaTemplate
from jevexp.settings.messages import explain, field_names, unknown_field
from jevexp.settings.model import (
    ChatTemplate,
    ModelIdentity,
    Quantization,
    WeightFile,
    Weights,
    WeightsPackage,
)
from jevexp.settings.openai import (
    LogprobsReadout,
    LogprobsTemplate,
    OpenAIBackend,
    OpenAIChatBackend,
    OpenAILogprobsBackend,
)
from jevexp.settings.providers import PROVIDERS, AnyBackend, Provider, provider_of
from jevexp.settings.python_factory import PythonBackend
from jevexp.settings.replay import ReplayBackend
from jevexp.settings.run import PINNED_COMMIT, Caps, Harness, Pricing, Runner, check_ledger_url
from jevexp.settings.settings import Settings
from jevexp.settings.systemone import SystemOneBackend
from jevexp.settings.tracking import Tracking

__all__ = [
    "PINNED_COMMIT",
    "PROVIDERS",
    "AnyBackend",
    "BackendSettings",
    "CacheType",
    "Caps",
    "ChatTemplate",
    "Dataset",
    "EnvironmentVariable",
    "FakeBackend",
    "Harness",
    "HttpBackend",
    "JudgevetBackend",
    "LlamaCppBackend",
    "LlamaReadout",
    "LlamaServer",
    "LlamaTemplate",
    "LogprobsReadout",
    "LogprobsTemplate",
    "Model",
    "ModelIdentity",
    "Name",
    "OpenAIBackend",
    "OpenAIChatBackend",
    "OpenAILogprobsBackend",
    "PinnedFile",
    "Pricing",
    "Provider",
    "PythonBackend",
    "Quantization",
    "ReplayBackend",
    "Runner",
    "Seconds",
    "ServerCommand",
    "Settings",
    "Sha256",
    "SystemOneBackend",
    "Tracking",
    "TypevetSession",
    "Usd",
    "WeightFile",
    "Weights",
    "WeightsPackage",
    "check_ledger_url",
    "explain",
    "field_names",
    "provider_of",
    "unknown_field",
]
