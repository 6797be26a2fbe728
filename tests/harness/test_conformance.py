"""The pinned harness's 22 scripted runs, reproduced through the public classes.

The vectors in tests/conformance were computed with the pinned harness's own algorithms; nothing
here recomputes an expected value.
"""

import builtins
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.decision import Decision, ProbsSource, Request
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.runner import RunContext, Runner, RunOutcome, Tariff
from jevexp.harness.stops import StopReason
from jevexp.ledger.file import FileLedger
from jevexp.store import RunDirectory
from tests.support.summaries import summarize

VECTORS = Path(__file__).parents[1] / "conformance"
SCENARIOS: list[dict[str, Any]] = json.loads((VECTORS / "scenarios.json").read_text())["scenarios"]
TASKS = {
    task.id: task
    for task in map(Task.model_validate_json, (VECTORS / "tasks.jsonl").read_text().splitlines())
}
# The reason is the contract, its wording is not.
REASONS = {
    "Shared job budget exhausted": {StopReason.CAP_REACHED},
    "Actual charge exceeded reserved maximum": {StopReason.OVERCHARGED},
    "access/rate limit or consecutive infrastructure errors": {
        StopReason.ACCESS_REFUSED,
        StopReason.RATE_LIMITED,
        StopReason.FAILURES_IN_A_ROW,
    },
}


class FakeClock:
    """Seconds that move only when told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Scripted:
    """A provider that gives a scenario's answers in order and moves the clock as it does."""

    name = "scripted"

    def __init__(
        self, answers: list[dict[str, Any]], cost_basis: str | None, clock: FakeClock
    ) -> None:
        self.cost_basis = cost_basis
        self._answers = answers
        self._next = 0
        self._clock = clock

    def open(self, log_directory: Path) -> "Scripted":
        return self

    def close(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {}

    def reserve_estimate(self, request: Request) -> float | None:
        estimate: float | None = self._answers[self._next].get("reserve_estimate")
        return estimate

    def decide(self, request: Request) -> Decision:
        answer = self._answers[self._next]
        self._next += 1
        self._clock.seconds += answer["latency_s"]
        if "raises" in answer:
            raise getattr(builtins, answer["raises"])
        return Decision(
            ok=answer["ok"],
            model="m-1",
            probs=answer.get("probs"),
            label=answer.get("label"),
            probs_source=ProbsSource(answer.get("probs_source", "native")),
            error=answer.get("error"),
            status_code=answer.get("status"),
            usage=answer.get("usage", {}),
            request=answer.get("request_body"),
            response=answer.get("raw"),
        )


def approx(value: Any) -> Any:
    """Compare floats to 1e-12 anywhere inside, and everything else exactly."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return pytest.approx(value, abs=1e-12, rel=1e-12)
    if isinstance(value, Mapping):
        return {key: approx(part) for key, part in value.items()}
    return [approx(part) for part in value]


class Replay:
    """One scenario, run through our classes, with everything that it left behind."""

    def __init__(self, scenario: dict[str, Any], directory: Path) -> None:
        clock = FakeClock()
        backend = Scripted(scenario["answers"], scenario["cost_basis"], clock)
        tasks = [TASKS[task_id] for task_id in scenario["task_ids"]]
        prices = scenario["prices"]
        evidence = RunDirectory.create(directory / "run")
        with FileLedger(directory / "ledger.jsonl", scenario["caps"]["cap_usd"]) as ledger:
            runner = Runner(
                RunContext(
                    backend,
                    ledger,
                    evidence,
                    model="m-1",
                    tariff=Tariff(
                        prices["input_per_m"], prices["output_per_m"], backend.cost_basis
                    ),
                    reserve_usd=scenario["caps"]["reserve_usd"],
                    clock=clock,
                )
            )
            self.outcome: RunOutcome = runner.run(tasks)
            self.charged = ledger.charged_usd
        evidence.close()
        self.records: list[Record] = list(evidence.records())
        self.summary = summarize(tasks, self.records, ledger_charged_usd=self.charged)
        self.rows = [
            json.loads(line) for line in (directory / "ledger.jsonl").read_text().splitlines()
        ]
        self.raw = {path.name: path.read_text() for path in (directory / "run/raw").iterdir()}


@pytest.fixture(scope="module", params=SCENARIOS, ids=lambda scenario: scenario["name"])
def scenario(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


@pytest.fixture(scope="module")
def replay(scenario: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Replay:
    return Replay(scenario, tmp_path_factory.mktemp(scenario["name"]))


def test_there_are_22_scenarios() -> None:
    assert len(SCENARIOS) == 22


def test_records_are_those_of_the_pinned_harness(replay: Replay, scenario: dict[str, Any]) -> None:
    written = [record.line() for record in replay.records]
    for record in written:
        assert record.pop("ts") > 0
    assert written == approx(scenario["expect"]["records"])


def test_records_keep_the_field_order_of_the_pinned_harness(
    replay: Replay, scenario: dict[str, Any]
) -> None:
    for record, expected in zip(replay.records, scenario["expect"]["records"], strict=True):
        assert [name for name in record.line() if name != "ts"] == list(expected)


def test_ledger_rows_are_those_of_the_pinned_harness(
    replay: Replay, scenario: dict[str, Any]
) -> None:
    names: dict[str, str] = {}
    for row in replay.rows:
        assert row.pop("ts") > 0
        if "reservation_id" in row:
            row["reservation_id"] = names.setdefault(row["reservation_id"], f"r{len(names)}")
    assert replay.rows == approx(scenario["expect"]["ledger"])
    assert replay.charged == approx(scenario["expect"]["charged_usd"])


def test_raw_evidence_is_byte_for_byte_that_of_the_pinned_harness(
    replay: Replay, scenario: dict[str, Any]
) -> None:
    assert replay.raw == scenario["expect"]["raw"]


def test_stop_reason_is_that_of_the_pinned_harness(
    replay: Replay, scenario: dict[str, Any]
) -> None:
    lines = scenario["expect"]["stop"]
    if not lines:
        assert replay.outcome.stop is None
        return
    (line,) = lines
    allowed = next(reasons for words, reasons in REASONS.items() if words in line)
    assert replay.outcome.stop in allowed


def test_summary_is_that_of_the_pinned_harness(replay: Replay, scenario: dict[str, Any]) -> None:
    assert replay.summary == approx(scenario["expect"]["summary"])


@pytest.fixture
def by_name() -> Callable[[str], dict[str, Any]]:
    return lambda name: next(one for one in SCENARIOS if one["name"] == name)


@pytest.mark.parametrize(
    ("name", "stop"),
    [
        ("stop_on_401", StopReason.ACCESS_REFUSED),
        ("stop_on_403", StopReason.ACCESS_REFUSED),
        ("stop_on_429", StopReason.RATE_LIMITED),
        ("three_failures_stop", StopReason.FAILURES_IN_A_ROW),
    ],
)
def test_our_stop_reasons_say_which_rule_it_was(
    name: str,
    stop: StopReason,
    by_name: Callable[[str], dict[str, Any]],
    tmp_path: Path,
) -> None:
    assert Replay(by_name(name), tmp_path).outcome.stop is stop
