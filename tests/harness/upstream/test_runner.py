"""Our backends through the pinned harness's own runner; a stand-in takes its place."""

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.decision import Decision
from jevexp.errors import InputError
from jevexp.harness.interrupts import Interrupted, Interrupts
from jevexp.harness.runner import RunContext, RunOutcome, Tariff
from jevexp.harness.stops import ExpectedModel, StopReason
from jevexp.harness.upstream import Adapter, PreparingAdapter, UpstreamRunner
from jevexp.harness.upstream_package import Location, Package
from jevexp.ledger.file import FileLedger
from jevexp.store import RunDirectory
from tests.harness.test_conformance import REASONS, SCENARIOS, approx
from tests.harness.upstream.scenarios import Played
from tests.support.provider import Estimating, Preparing, Provider
from tests.support.tasks import answer, failure, task

MINE = [task("noul", id=f"t{n}", state=n) for n in range(5)]
YES = answer({"no": 0.1, "yes": 0.9}, request={"q": 1}, response={"a": 1})


class Run:
    """Tasks through the stand-in, in a fresh directory."""

    def __init__(self, package: Package, folder: Path, shared: Path | None = None) -> None:
        self._package = package
        self.directory = RunDirectory.create(folder)
        path = folder / "ledger.jsonl"
        self.ledger = FileLedger(shared or path, 15.0, own_rows=path if shared else None)

    def __call__(
        self,
        backend: Provider,
        *,
        session: ExpectedModel | None = None,
        interrupts: Interrupts | None = None,
        tasks: Any = MINE,
        on_record: Callable[[Any], None] | None = None,
    ) -> RunOutcome:
        runner = UpstreamRunner(
            self._package,
            RunContext(
                backend,
                self.ledger,
                self.directory,
                model="m-1",
                tariff=Tariff(basis=backend.cost_basis),
                reserve_usd=0.02,
                expected=session,
                interrupts=interrupts,
            ),
            self.ledger,
        )
        return runner.run(tasks, on_record)

    def close(self) -> None:
        self.directory.close()
        self.ledger.close()

    @property
    def ids(self) -> list[str]:
        return [record.task_id for record in self.directory.records()]


@pytest.fixture
def run(standin: Package, tmp_path: Path) -> Iterator[Run]:
    made = Run(standin, tmp_path / "run")
    yield made
    made.close()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_the_scenarios_come_out_as_the_vectors_say(
    scenario: dict[str, Any],
    standin: Package,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = Played(standin, scenario, tmp_path, monkeypatch)
    expected = scenario["expect"]
    assert [dict(record.line(), ts=0.0) for record in played.records] == approx(
        [{**record, "ts": 0.0} for record in expected["records"]]
    )
    assert played.seen == played.records
    assert played.raw == expected["raw"]
    assert played.summary == approx(expected["summary"])
    assert played.charged == played.charged_here == approx(expected["charged_usd"])
    assert len(played.rows) == len(expected["ledger"])
    if not expected["stop"]:
        assert played.outcome.stop is None
        return
    (line,) = expected["stop"]
    allowed = next(reasons for words, reasons in REASONS.items() if words in line)
    assert played.outcome.stop in allowed


def test_each_record_is_there_before_the_next_task_starts(run: Run) -> None:
    seen: list[list[str]] = []

    def step(request: Any) -> Decision:
        seen.append(run.ids)
        return YES

    assert run(Provider(step)) == RunOutcome(5, None)
    assert seen == [[one.id for one in MINE[:n]] for n in range(5)]
    written = (run.directory.path / "upstream" / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["task_id"] for line in written] == run.ids


def test_the_provider_gets_what_it_gets_from_our_own_runner(run: Run) -> None:
    provider = Provider(YES)
    run(provider)
    assert [request.wire() for request in provider.received] == [
        {
            "state": one.state,
            "model": "m-1",
            "questions": {"decision": one.question.wire()},
        }
        for one in MINE
    ]


def test_another_model_ends_the_run_with_its_record_kept(run: Run) -> None:
    provider = Provider(YES, answer({"no": 0.5, "yes": 0.5}, model="m-2", request={}))
    assert run(provider, session=ExpectedModel("m-1")) == RunOutcome(2, StopReason.IDENTITY_CHANGED)
    assert run.ids == ["t0", "t1"]


def test_another_model_at_the_last_task_ends_the_run_as_well(run: Run) -> None:
    outcome = run(Provider(YES), session=ExpectedModel("m-2"), tasks=MINE[:1])
    assert outcome == RunOutcome(1, StopReason.IDENTITY_CHANGED)


def test_a_signal_keeps_what_was_answered_and_the_reservation_in_flight(run: Run) -> None:
    def step(request: Any) -> Decision:
        if request.state == 2:
            signal.raise_signal(signal.SIGTERM)
        return YES

    with Interrupts() as interrupts, pytest.raises(Interrupted):
        run(Provider(step), interrupts=interrupts)
    assert run.ids == ["t0", "t1"]
    assert run.ledger.charged_usd == run.ledger.charged_here_usd == pytest.approx(0.06)


def test_a_signal_between_tasks_loses_no_record(run: Run) -> None:
    with Interrupts() as interrupts, pytest.raises(Interrupted):
        run(
            Provider(YES),
            interrupts=interrupts,
            on_record=lambda record: signal.raise_signal(signal.SIGTERM),
        )
    assert run.ids == ["t0"]


def test_a_status_that_only_a_body_tells_is_no_rule_of_the_harness(run: Run) -> None:
    run(Provider(failure("error_body_429", 200), YES), tasks=MINE[:2])
    assert [record.error for record in run.directory.records()] == ["error_body_429", None]


def test_its_words_go_to_the_log_and_not_to_the_terminal(
    run: Run, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        run(Provider(failure(status_code=401)))
    assert capsys.readouterr() == ("", "")
    assert "STOP: the provider refuses or fails" in caplog.text


def test_runtime_is_kept_where_the_harness_looks_for_it(run: Run) -> None:
    run(
        Provider(answer({"no": 0.5, "yes": 0.5}, request={}, response={}, runtime={"mass": 0.5})),
        tasks=MINE[:1],
    )
    (record,) = run.directory.records()
    assert record.runtime == {"mass": 0.5}
    (raw,) = run.directory.raw.iterdir()
    assert json.loads(raw.read_text())["response"] == {"runtime": {"mass": 0.5}}


def test_a_providers_own_word_for_runtime_does_not_break_the_record(run: Run) -> None:
    run(
        Provider(answer({"no": 0.5, "yes": 0.5}, request={}, response={"runtime": "cpu"})),
        tasks=MINE[:1],
    )
    (record,) = run.directory.records()
    assert record.runtime is None


def test_numbers_that_json_has_no_word_for_are_kept_as_text(run: Run) -> None:
    run(Provider(answer({"no": float("nan"), "yes": 1.0}, response=float("inf"))), tasks=MINE[:1])
    (record,) = run.directory.records()
    assert record.probs_as_returned == {"no": "nan", "yes": 1.0}
    assert not record.valid


def test_preparing_is_timed_and_what_goes_wrong_is_not_told(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(request: Any) -> None:
        raise RuntimeError("hunter2")

    run(Preparing(fails, YES), tasks=MINE[:1])
    (record,) = run.directory.records()
    assert record.ok
    assert record.prepare_s is not None
    assert "hunter2" not in caplog.text


def test_an_estimate_is_reserved(run: Run) -> None:
    run(Estimating(0.5, YES), tasks=MINE[:1])
    assert run.ledger.charged_usd == pytest.approx(0.5)


def test_what_it_writes_into_a_shared_ledger_is_kept_as_the_runs_own(
    standin: Package, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.jsonl"
    with FileLedger(shared, 1.0) as other:
        name = other.reserve(0.25, {"task_id": "theirs", "adapter": "other"})
        # As a person releases it.
        other.settle(name, 0.0, {"task_id": "theirs", "basis": "released", "released_by": "x@y"})
    run = Run(standin, tmp_path / "run", shared)
    try:
        run(Provider(YES))
    finally:
        run.close()
        run.ledger.close()
    rows = [json.loads(line) for line in shared.read_text().splitlines()]
    kept = [json.loads(line) for line in (tmp_path / "run/ledger.jsonl").read_text().splitlines()]
    assert kept[0]["cap_usd"] == 1.0
    assert kept[1:] == rows[3:]
    assert len(kept) == 1 + 2 * len(MINE)


def test_a_task_that_the_harness_refuses_ends_the_run_before_any_request(run: Run) -> None:
    provider = Provider(YES)
    with pytest.raises(InputError, match=r"^task 'refused': the pinned harness refuses it: "):
        run(provider, tasks=[*MINE, task("noul", id="refused")])
    assert provider.received == []


def test_it_writes_nothing_into_its_own_folder(standin: Package, tmp_path: Path) -> None:
    inside = Package(
        Location(tmp_path.resolve(), "git checkout"),
        standin.Runner,
        standin.Ledger,
        standin.Task,
        standin.DecisionResult,
        standin.summarize,
    )
    run = Run(inside, tmp_path / "run")
    with pytest.raises(InputError, match=r"writes nothing into its own folder .*set outputs="):
        run(Provider(YES))
    run.close()


@pytest.mark.parametrize("basis", [None, "own_machine"])
def test_an_adapter_has_what_the_harness_reads(run: Run, basis: str | None) -> None:
    context = RunContext(
        Provider(YES),
        run.ledger,
        run.directory,
        model="m-1",
        tariff=Tariff(0.5, None, basis),
        reserve_usd=0.02,
    )

    def adapter(kind: type[Adapter]) -> Adapter:
        return kind(context, MINE, result=dict, next_task=lambda: None)

    plain = adapter(Adapter)
    assert (plain.name, plain.price_input_per_m, plain.price_output_per_m) == (
        "provider",
        0.5,
        None,
    )
    assert getattr(plain, "cost_basis", None) == basis
    assert plain.reserve_estimate(MINE[0]) is None
    assert not hasattr(plain, "prepare")
    assert hasattr(adapter(PreparingAdapter), "prepare")
