"""What all checks look at: one run directory, its manifest, and its tasks where they are here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jevexp.core.task import Task
from jevexp.store import Manifest, RunStatus
from jevexp.verification.tree import Tree

# A run that ended in one of these ways may have been cut off in the middle of a task.
_CUT_OFF = frozenset({RunStatus.RUNNING, RunStatus.CRASHED, RunStatus.INTERRUPTED})


@dataclass(frozen=True)
class Subject:
    """`tasks` are the planned ones in order, null where the dataset is not here."""

    root: Path
    tree: Tree
    manifest: Manifest
    tasks: Sequence[Task] | None

    @property
    def resolved(self) -> Mapping[str, Any]:
        """The resolved configuration."""
        return self.manifest.config.resolved

    @property
    def kind(self) -> Any:
        """The kind of the backend."""
        return self.resolved["backend"]["kind"]

    @property
    def cut_off(self) -> bool:
        """Whether a task may have been under way when the run ended."""
        return self.manifest.status in _CUT_OFF

    @property
    def upstream(self) -> bool:
        """Whether the pinned harness ran the tasks."""
        return self.manifest.harness.get("name") == "upstream"

    @cached_property
    def resumed(self) -> dict[str, Any]:
        """The manifest's section on the run that this one resumed; empty where it resumed none."""
        section: dict[str, Any] | None = self.manifest.model_dump(mode="json").get("resumed")
        return section or {}

    @cached_property
    def adopted(self) -> frozenset[str]:
        """The tasks whose records come from an earlier run."""
        return frozenset(self.resumed.get("adopted", ()))

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each planned task stands, by its id."""
        return {task.id: place for place, task in enumerate(self.tasks or ())}
