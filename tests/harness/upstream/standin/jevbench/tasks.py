"""Canonical task records."""

from dataclasses import dataclass
from typing import Any


@dataclass
class Task:
    id: str
    family: str
    state: Any
    question: dict[str, Any]
    labels: list[str]
    expected: Any
    split: str
    group: str | None = None
    provenance: dict[str, Any] | None = None

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Task":
        task = cls(**fields)
        task.validate()
        return task

    def validate(self) -> None:
        if self.expected is not None and str(self.expected) not in self.labels:
            raise ValueError("expected label is none of the labels")
        if self.id == "refused":
            raise ValueError("refused for a test")
