"""What a replay plays: decisions by what was asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jevexp.core.decision import Decision
from jevexp.core.json import dumps


@dataclass(frozen=True, slots=True)
class Source:
    """Earlier answers.

    Attributes:
        decisions: by `asked`, in the order in which they were given.
        description: which source it is, as JSON; goes into the manifest.
    """

    decisions: Mapping[str, Sequence[Decision]]
    description: dict[str, Any]

    @property
    def model(self) -> str | None:
        """The model that gave all the answers; None where there were several, or none."""
        given = (decision for same in self.decisions.values() for decision in same)
        models = {decision.model for decision in given if decision.ok}
        return models.pop() if len(models) == 1 else None


def asked(state: Any, question: Mapping[str, Any]) -> str:
    """The key of a question about a state, both as a provider receives them.

    The order of the options is part of the question, since a model may answer by it.
    """
    return dumps([state, question])
