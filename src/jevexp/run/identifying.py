"""Who answers, held against who was declared."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jevexp.core.identity import Fingerprint, IdentityReport
from jevexp.identity import fingerprint, observe, reconcile
from jevexp.settings import Settings
from jevexp.untrusted.console import SafeConsole


@dataclass(frozen=True, slots=True)
class Identification:
    """Who answers, held against who was declared, and the hash of what is measured."""

    report: IdentityReport
    fingerprint: Fingerprint


def identify(settings: Settings, description: Mapping[str, Any]) -> Identification:
    """Identify an open provider by its description and, where it is here, its weights' file.

    Raises:
        InputError: the file that the provider was started with cannot be read.
    """
    started_with = description.get("gguf")
    observed = observe(
        description,
        weights=Path(started_with) if started_with else None,
        show=SafeConsole(stderr=True),
    )
    report = reconcile(settings.model, observed)
    return Identification(report, fingerprint(description, report, settings.runner.concurrency))
