"""The composed configuration as one frozen, validated object.

Hydra and OmegaConf stop above here: everything else reads these models. Every key is listed, an
unknown one is refused, and a secret appears only as the name of the environment variable that
holds it.
"""

from jevexp.settings.backends import (
    FakeBackend,
    JudgevetBackend,
    LlamaCppBackend,
    LlamaReadout,
    LlamaServer,
    LlamaTemplate,
    PythonBackend,
    ReplayBackend,
    TypevetSession,
)
from jevexp.settings.base import (
    BackendSettings,
    CacheType,
    EnvironmentVariable,
    FrozenSettings,
    Name,
    Seconds,
    Sha256,
    TrackerSettings,
    Usd,
    field_names,
    read_secret,
    unknown_field,
)
from jevexp.settings.http import (
    HttpBackend,
    LogprobsReadout,
    LogprobsTemplate,
    OpenAIBackend,
    OpenAIChatBackend,
    OpenAILogprobsBackend,
    ServerCommand,
    SystemOneBackend,
)
from jevexp.settings.model import (
    ChatTemplate,
    ModelIdentity,
    Quantization,
    WeightFile,
    Weights,
    WeightsPackage,
)
from jevexp.settings.providers import PROVIDERS, AnyBackend, Provider, provider_of
from jevexp.settings.run import (
    PINNED_COMMIT,
    Caps,
    Dataset,
    Harness,
    PinnedFile,
    Pricing,
    Runner,
    Settings,
    check_ledger_url,
)
from jevexp.settings.trackers import TRACKERS, TrackerEntry, Tracking
from jevexp.settings.tracking import MlflowTracking

__all__ = [
    "PINNED_COMMIT",
    "PROVIDERS",
    "TRACKERS",
    "AnyBackend",
    "BackendSettings",
    "CacheType",
    "Caps",
    "ChatTemplate",
    "Dataset",
    "EnvironmentVariable",
    "FakeBackend",
    "FrozenSettings",
    "Harness",
    "HttpBackend",
    "JudgevetBackend",
    "LlamaCppBackend",
    "LlamaReadout",
    "LlamaServer",
    "LlamaTemplate",
    "LogprobsReadout",
    "LogprobsTemplate",
    "MlflowTracking",
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
    "TrackerEntry",
    "TrackerSettings",
    "Tracking",
    "TypevetSession",
    "Usd",
    "WeightFile",
    "Weights",
    "WeightsPackage",
    "check_ledger_url",
    "field_names",
    "provider_of",
    "read_secret",
    "unknown_field",
]
