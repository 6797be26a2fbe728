"""A benchmark task: a state, a typed question about it, and maybe the right answer."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, model_validator

from jevexp.core.json import MAX_TASK_DEPTH, dumps, is_deeper_than

NOUL_LABELS = ("no", "yes")
# A state with one of these keys would tell the provider what to answer.
GOLD_KEYS = frozenset({"expected", "label", "ground_truth", "answer_key"})

NonEmpty = Annotated[StrictStr, Field(min_length=1)]


class Kind(StrEnum):
    """The type of a question."""

    NOUL = "noul"
    CHOICE = "choice"
    SCORE = "score"


def as_text(value: Any) -> str:
    """A state or a description as it is read: null is empty, what is no text is indented JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else dumps(value, indent=2)


class Question(BaseModel):
    """What is asked about a state.

    `criteria` is for noul null or a description under "true", "false" or both, for choice null or a
    mapping from label to description, for score the list of levels, lowest first. Further keys
    stay with the task, since they are part of the dataset hash, and are never sent.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    type: Kind
    instructions: StrictStr
    criteria: dict[str, Any] | list[Any] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        """The labels that the question itself names; empty for a choice without criteria."""
        if self.type is Kind.NOUL:
            return NOUL_LABELS
        if isinstance(self.criteria, list):
            return tuple(str(level) for level in range(len(self.criteria)))
        return tuple(self.criteria or ())

    @property
    def descriptions(self) -> dict[str, str]:
        """What the question says about each of its `options`, as text; empty where it says nothing.

        Every prompt and page words an option by this.
        """
        described = self.criteria or {}
        if isinstance(described, list):
            described = {str(level): text for level, text in enumerate(described)}
        elif self.type is Kind.NOUL:
            described = {"no": described.get("false"), "yes": described.get("true")}
        return {label: as_text(described.get(label)) for label in self.options}

    def wire(self) -> dict[str, Any]:
        """The question as a provider receives it: `criteria` is left out when null."""
        fields: dict[str, Any] = {"type": self.type.value, "instructions": self.instructions}
        if self.criteria is not None:
            fields["criteria"] = self.criteria
        return fields


class Task(BaseModel):
    """One line of a task file; see the reference page on task files.

    `expected` is a label, for score tasks an integer level, or null where no truth is known.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: NonEmpty
    family: NonEmpty
    state: Any
    question: Question
    labels: Annotated[tuple[StrictStr, ...], Field(min_length=1)]
    expected: StrictInt | StrictStr | None
    split: Literal["public", "private"]
    group: StrictStr | None = None
    provenance: dict[str, Any] | None = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len(set(self.labels)) != len(self.labels):
            raise ValueError("labels: a label occurs twice")
        nested = {
            "state": self.state,
            "question.criteria": self.question.criteria,
            "provenance": self.provenance,
        }
        for name, value in nested.items():
            if is_deeper_than(value, MAX_TASK_DEPTH):
                raise ValueError(f"{name}: nested more than {MAX_TASK_DEPTH} levels deep")
        if isinstance(self.state, Mapping) and (leaks := sorted(GOLD_KEYS & set(self.state))):
            raise ValueError(f"state: has the key {leaks[0]!r}, which gives the answer away")
        check = {Kind.NOUL: _check_noul, Kind.CHOICE: _check_choice, Kind.SCORE: _check_score}
        check[self.question.type](self)
        return self

    @property
    def kind(self) -> Kind:
        """The type of the task's question."""
        return self.question.type

    @property
    def gold(self) -> str | None:
        """The expected label as text, or None where no truth is known."""
        return None if self.expected is None else str(self.expected)

    @property
    def scorable(self) -> bool:
        """Whether the task counts in scores: it has a truth and is not excluded."""
        return self.expected is not None and not (self.provenance or {}).get("exclude_reason")

    def canonical(self) -> dict[str, Any]:
        """All nine fields, defaults filled in, as they enter the dataset hash."""
        return {
            "id": self.id,
            "family": self.family,
            "state": self.state,
            "question": self.question.model_dump(mode="json", exclude_unset=True),
            "labels": list(self.labels),
            "expected": self.expected,
            "split": self.split,
            "group": self.group,
            "provenance": self.provenance,
        }


def _check_noul(task: Task) -> None:
    if task.labels != NOUL_LABELS:
        raise ValueError('labels: a noul task has exactly ["no", "yes"]')
    criteria = task.question.criteria
    if criteria is not None and (
        not isinstance(criteria, dict) or not criteria or not set(criteria) <= {"true", "false"}
    ):
        raise ValueError(
            'question.criteria: a noul task has "true", "false" or both as keys, or is null'
        )
    _check_expected_label(task)


def _check_choice(task: Task) -> None:
    criteria = task.question.criteria
    if criteria is not None and (
        not isinstance(criteria, dict) or set(criteria) != set(task.labels)
    ):
        raise ValueError("question.criteria: a choice task maps exactly its labels, or is null")
    _check_expected_label(task)


def _check_score(task: Task) -> None:
    levels = task.question.criteria
    if not isinstance(levels, list) or not levels:
        raise ValueError("question.criteria: a score task lists its levels, lowest first")
    if task.labels != tuple(str(level) for level in range(len(levels))):
        raise ValueError(
            f'labels: a score task with {len(levels)} levels has "0" to "{len(levels) - 1}"'
        )
    if task.expected is None:
        return
    if not isinstance(task.expected, int) or not 0 <= task.expected < len(levels):
        raise ValueError(
            f"expected: a score task expects a whole number from 0 to {len(levels) - 1}, "
            f"found {task.expected!r}"
        )


def _check_expected_label(task: Task) -> None:
    if task.expected is not None and task.expected not in task.labels:
        raise ValueError(f"expected: {task.expected!r} is not one of the labels")
