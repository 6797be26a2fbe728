"""The composed configuration as one frozen, validated object.

Hydra and OmegaConf stop above here: everything else reads these models. Every key is listed, an
unknown one is refused, and a secret appears only as the name of the environment variable that
holds it.
"""

from jevexp.settings.backends import (
    DecisionsBackend,
    FakeBackend,
    JudgevetBackend,
    LlamaCppBackend,
    LlamaServer,
    OpenAIChatBackend,
    OpenAILogprobsBackend,
    PythonBackend,
    ReplayBackend,
    ServerCommand,
    SystemOneBackend,
)
from jevexp.settings.base import (
    BackendSettings,
    CacheType,
    EnvironmentVariable,
    FrozenSettings,
    TrackerSettings,
    field_names,
    unknown_field,
)
from jevexp.settings.providers import PROVIDERS, AnyBackend, Provider, provider_of
from jevexp.settings.run import (
    PINNED_COMMIT,
    Caps,
    Dataset,
    Harness,
    ModelIdentity,
    PinnedFile,
    Quantization,
    Settings,
    WeightFile,
    check_ledger_url,
)
from jevexp.settings.trackers import TRACKERS, TrackerEntry, Tracking
from jevexp.settings.tracking import MlflowTracking

# fmt: off
__all__ = [
    "PINNED_COMMIT", "PROVIDERS", "TRACKERS", "AnyBackend", "BackendSettings", "CacheType", "Caps",
    "Dataset", "DecisionsBackend", "EnvironmentVariable", "FakeBackend", "FrozenSettings",
    "Harness", "JudgevetBackend", "LlamaCppBackend", "LlamaServer", "MlflowTracking",
    "ModelIdentity", "OpenAIChatBackend", "OpenAILogprobsBackend", "PinnedFile", "Provider",
    "PythonBackend", "Quantization", "ReplayBackend", "ServerCommand", "Settings",
    "SystemOneBackend", "TrackerEntry", "TrackerSettings", "Tracking", "WeightFile",
    "check_ledger_url", "field_names", "provider_of", "unknown_field",
]
# fmt: on
