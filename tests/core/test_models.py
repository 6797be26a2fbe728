"""What is read from a file cannot be changed, and says what becomes of fields nobody knows."""

import math
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ValidationError

from jevexp.backends.replay import AnswerLine
from jevexp.core.identity import Finding, Fingerprint, IdentityReport, ObservedValue
from jevexp.core.record import CalibrationBin, Latency, Record, Summary
from jevexp.core.task import Question, Task
from jevexp.ledger.owners import LedgerOwner
from jevexp.store.finding import PlannedRun, SweepFile
from jevexp.store.manifest import Manifest, Section

# What becomes of a field that the class does not have.
UNKNOWN = {
    "allow": (
        Summary, CalibrationBin, Latency, Question, IdentityReport, Finding, ObservedValue,
        Fingerprint, Manifest, Section,
    ),
    "forbid": (Record, AnswerLine, PlannedRun, SweepFile),
    "ignore": (Task, LedgerOwner),
}  # fmt: skip


def and_below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for below in model.__subclasses__():
        yield from and_below(below)


@pytest.mark.parametrize(
    ("model", "unknown"), [(model, name) for name, models in UNKNOWN.items() for model in models]
)
def test_a_part_of_a_file_is_frozen(model: type[BaseModel], unknown: str) -> None:
    for each in and_below(model):
        config = each.model_config
        assert (config["frozen"], config.get("extra", "ignore")) == (True, unknown)


@pytest.mark.parametrize(
    "changed", [{"n": 1.0}, {"n": "1"}, {"n": True}, {"p50_s": math.inf}, {"p95_s": math.nan}]
)
def test_a_number_of_a_summary_is_no_text_and_finite(changed: dict[str, object]) -> None:
    fields: dict[str, object] = {"n": 1, "p50_s": 0.5, "p95_s": None}
    assert Latency.model_validate(fields).p50_s == 0.5
    with pytest.raises(ValidationError):
        Latency.model_validate(fields | changed)


def test_what_earlier_versions_did_not_write() -> None:
    assert Manifest.model_fields["concurrency"].default == 1
    sweep = SweepFile.model_validate({"runs": [{"config": {}}]})
    assert (sweep.version, sweep.resumed, sweep.charged_usd) == (1, None, 0.0)
    assert (sweep.runs[0].ended_in, sweep.runs[0].goes_on_with) == (None, None)
    line = AnswerLine.model_validate({"state": None, "question": {}, "label": None})
    assert (line.model, line.probs_source, line.usage) == ("replay", "native", {})
    assert (line.probs, line.error, line.status_code) == (None, None, None)
