"""How often the two wordings of one question get the same answer."""

from typing import Any, NamedTuple

from jevexp.core.record import Record
from jevexp.harness.groups import ratio


class _Answer(NamedTuple):
    valid: bool
    predicted: str | None
    correct: bool


class Paraphrases:
    """The groups of tasks that share a name; pairs are those of exactly two."""

    def __init__(self) -> None:
        self._planned: dict[str, int] = {}
        self._answers: dict[str, list[_Answer]] = {}

    def plan(self, group: str | None) -> None:
        """Count a planned task of this group, if it has one."""
        if group is not None:
            self._planned[group] = self._planned.get(group, 0) + 1

    def add(self, group: str | None, record: Record) -> None:
        """Take in the record of a task of this group, once all tasks are planned."""
        if group is not None and self._planned[group] == 2:
            answer = _Answer(record.valid, record.predicted, record.correct is True)
            self._answers.setdefault(group, []).append(answer)

    def numbers(self) -> dict[str, Any]:
        """How many pairs there are, agree, and are right in both wordings."""
        pairs = sum(count == 2 for count in self._planned.values())
        whole = [pair for pair in self._answers.values() if len(pair) == 2]
        both_valid = [pair for pair in whole if all(one.valid for one in pair)]
        agree = sum(first.predicted == second.predicted for first, second in both_valid)
        both_correct = sum(all(one.correct for one in pair) for pair in both_valid)
        return {
            "pairs": pairs,
            "both_valid": len(both_valid),
            "agree": agree,
            "agreement": ratio(agree, len(both_valid)),
            "both_correct_rate_all_pairs": ratio(both_correct, pairs),
        }
