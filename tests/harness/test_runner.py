"""One task after the other: what is reserved, asked, kept, settled, recorded, and when it ends."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.backends.protocol import Backend
from jevexp.core.decision import Decision, Request
from jevexp.core.json import MAX_DEPTH
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.runner import RunContext, Runner, RunOutcome, Tariff
from jevexp.harness.stops import ExpectedModel, StopReason
from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import LedgerError
from jevexp.store import RunDirectory
from tests.support.provider import Estimating, Preparing, Provider
from tests.support.tasks import answer, failure, fields, kinds, task

YES = answer({"no": 0.25, "yes": 0.75}, request={"sent": True}, response={"got": "yes"})


class Bench:
    """A directory, a ledger and a clock that moves a second whenever somebody looks."""

    def __init__(self, folder: Path) -> None:
        self.directory = RunDirectory.create(folder / "run")
        self.ledger_path = folder / "ledger.jsonl"
        self.ledger = FileLedger(self.ledger_path, 1.0)
        self.tariff = Tariff()
        self.seconds = 0.0

    def clock(self) -> float:
        self.seconds += 1
        return self.seconds

    def run(
        self,
        backend: Backend,
        *tasks: Task,
        on_record: Callable[[Record], None] | None = None,
        evidence: Any = None,
        session: ExpectedModel | None = None,
    ) -> RunOutcome:
        runner = Runner(
            RunContext(
                backend,
                self.ledger,
                evidence or self.directory,
                model="m-1",
                tariff=self.tariff,
                reserve_usd=0.02,
                expected=session,
                clock=self.clock,
                now=lambda: 7.0,
            )
        )
        return runner.run(tasks, on_record)

    def records(self) -> list[Record]:
        return list(self.directory.records())

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ledger_path.read_text().splitlines()]

    def raw(self, of: Task) -> Any:
        name = hashlib.sha256(of.id.encode()).hexdigest()
        return json.loads((self.directory.raw / f"{name}.json").read_bytes())

    def everything(self) -> bytes:
        paths = [self.ledger_path, *self.directory.path.rglob("*")]
        return b"".join(path.read_bytes() for path in paths if path.is_file())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.directory.close()
    made.ledger.close()


def many(count: int) -> list[Task]:
    return [task("noul", id=f"t{number}") for number in range(count)]


# What reaches the provider


@given(kinds(), st.data())
def test_nothing_but_state_question_and_model_reaches_the_provider(
    kind: str, data: st.DataObject
) -> None:
    names = st.text("abcdefghij", min_size=12, max_size=20).map("marker-".__add__)
    same = fields(kind)["question"]
    labels = fields(kind)["labels"]

    def variant() -> Task:
        expected = data.draw(st.sampled_from([None, *labels]))
        return task(
            kind,
            id=data.draw(names),
            family=data.draw(names),
            group=data.draw(names),
            split=data.draw(st.sampled_from(["public", "private"])),
            provenance={data.draw(names): data.draw(names)},
            expected=int(expected) if kind == "score" and expected is not None else expected,
            question=same | {"answer": data.draw(names), "expected": data.draw(names)},
        )

    one, other = Request.of(variant(), "m-1"), Request.of(variant(), "m-1")
    assert one == other
    assert repr(one) == repr(other)
    assert "marker-" not in repr(one)
    assert one.wire() == {
        "state": fields(kind)["state"],
        "model": "m-1",
        "questions": {"decision": same},
    }
    assert {name: getattr(one, name) for name in one.__slots__} == {
        "state": fields(kind)["state"],
        "question": one.question,
        "model": "m-1",
    }
    assert not one.question.model_extra


def test_the_runner_hands_over_exactly_such_a_request(bench: Bench) -> None:
    of = task("choice")
    provider = Provider(failure())
    bench.run(provider, of)
    assert provider.received == [Request.of(of, "m-1")]


# Raw evidence


def test_raw_evidence_is_the_exact_exchange_under_the_hash_of_the_id(bench: Bench) -> None:
    of = task("noul", id="größe/1")
    decision = answer(
        {"no": 0.25, "yes": 0.75},
        request={"state": "größe ☃", "n": 1.5},
        response=["<&>", None],
        status_code=200,
    )
    bench.run(Provider(decision), of)
    (path,) = bench.directory.raw.iterdir()
    assert path.name == hashlib.sha256("größe/1".encode()).hexdigest() + ".json"
    assert (
        path.read_bytes()
        == (
            '{"request": {"state": "größe ☃", "n": 1.5}, "response": ["<&>", null],'
            ' "http_status": 200}'
        ).encode()
    )
    (record,) = bench.records()
    assert record.raw_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


class Unprintable:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("sk-secret")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("response", "kept"),
    [
        ({"p": math.nan, "q": -math.inf}, {"p": "nan", "q": "-inf"}),
        ({1: {2.5: "x"}, None: ()}, {"1": {"2.5": "x"}, "None": []}),
        ({"big": 10**400}, {"big": str(10**400)}),
        ({"bigger": 10**5000}, {"bigger": "<int: ValueError>"}),
        (Unprintable(), "<Unprintable: RuntimeError>"),
        ({"half": "\ud83d", "\udc00": 1}, {"half": "'\\ud83d'", "'\\udc00'": 1}),
        (b"\x00\xff", "b'\\x00\\xff'"),
        ({1}, "{1}"),
    ],
)
def test_what_json_cannot_hold_is_kept_as_text(bench: Bench, response: Any, kept: Any) -> None:
    of = task("noul")
    bench.run(Provider(answer({"no": 0.25, "yes": 0.75}, response=response)), of)
    assert bench.raw(of)["response"] == kept
    assert bench.records()[0].valid


def test_a_million_brackets_are_cut_short_and_the_run_goes_on(bench: Bench) -> None:
    one, other = many(2)
    deep = answer({"no": 0.25, "yes": 0.75}, response=nested(900), runtime={"x": nested(5000)})
    assert bench.run(Provider(deep, YES), one, other) == RunOutcome(2, None)
    kept = bench.raw(one)["response"]
    for _ in range(MAX_DEPTH):
        (kept,) = kept
    assert isinstance(kept, str)


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, 10**400, pytest.param(10**5000, id="endless"), "0.75", True, None],
)
def test_a_distribution_of_anything_else_is_a_wrong_answer_that_is_kept(
    bench: Bench, value: Any
) -> None:
    of = task("noul")
    bench.run(Provider(answer({"no": 0.25, "yes": value})), of)
    (record,) = bench.records()
    assert record.ok
    assert not record.valid
    assert record.correct is False
    assert record.probs is None
    assert record.probs_as_returned is not None
    assert set(record.probs_as_returned) == {"no", "yes"}


def test_a_models_name_that_is_no_text_is_kept_escaped(bench: Bench) -> None:
    bench.run(Provider(answer({"no": 0.25, "yes": 0.75}, model="m\ud800")), task("noul"))
    assert bench.records()[0].model == "'m\\ud800'"


# Exceptions


@pytest.mark.parametrize(
    "error", [RuntimeError("sk-secret"), KeyError("sk-secret"), RecursionError("sk-secret")]
)
def test_an_exception_is_a_failed_attempt_of_which_only_the_class_is_kept(
    bench: Bench, error: Exception
) -> None:
    one, other = many(2)
    assert bench.run(Provider(error, YES), one, other).attempted == 2
    first, second = bench.records()
    assert first.error == type(error).__name__
    assert (first.ok, first.status, first.valid, first.correct) == (False, "failed", False, False)
    assert (first.model, first.probs_source, first.probs_as_returned) == ("", "unknown", None)
    assert second.ok
    assert bench.raw(one) == {"request": None, "response": None, "http_status": None}
    assert b"sk-secret" not in bench.everything()


# Preparing and estimating


def test_preparation_is_timed_apart_from_the_answer(bench: Bench) -> None:
    provider = Preparing(lambda request: None, YES)
    bench.run(provider, task("noul"))
    (record,) = bench.records()
    assert record.prepare_s == 1.0
    assert record.latency_s == 1.0


def test_a_provider_that_never_prepares_has_no_time_for_it(bench: Bench) -> None:
    bench.run(Provider(YES), task("noul"))
    assert bench.records()[0].prepare_s is None
    assert b"prepare_s" not in (bench.directory.path / "results.jsonl").read_bytes()


def test_a_preparation_that_fails_is_not_fatal_and_not_quoted(bench: Bench) -> None:
    def fail(request: Request) -> None:
        raise RuntimeError("sk-secret")

    assert bench.run(Preparing(fail, YES), task("noul")) == RunOutcome(1, None)
    (record,) = bench.records()
    assert record.ok
    assert record.prepare_s == 1.0
    assert b"sk-secret" not in bench.everything()


@pytest.mark.parametrize(
    ("estimate", "reserved"), [(None, 0.02), (0.0, 0.02), (0.019, 0.02), (0.5, 0.5), (-1.0, 0.02)]
)
def test_the_higher_of_estimate_and_default_is_reserved(
    bench: Bench, estimate: float | None, reserved: float
) -> None:
    bench.run(Estimating(estimate, YES), task("noul"))
    (record,) = bench.records()
    assert record.reserved_usd == reserved
    assert bench.rows()[1]["reserved_usd"] == reserved


def test_an_estimate_without_end_asks_nothing(bench: Bench) -> None:
    provider = Estimating(math.inf, YES)
    with pytest.raises(LedgerError, match="must be finite"):
        bench.run(provider, task("noul"))
    assert provider.received == []


def test_an_estimate_past_the_cap_stops_the_run_before_it_asks(bench: Bench) -> None:
    provider = Estimating(1.5, YES)
    assert bench.run(provider, task("noul")) == RunOutcome(0, StopReason.CAP_REACHED)
    assert provider.received == []


# Costs


USAGE = {"input_tokens": 1000, "output_tokens": 500}


@pytest.mark.parametrize(
    ("tariff", "usage", "ok", "cost", "basis"),
    [
        (Tariff(2.0, 8.0), USAGE, True, 0.006, "derived_usage_times_tariff"),
        (Tariff(2.0, 8.0, "mine"), USAGE, True, 0.006, "derived_usage_times_tariff"),
        (Tariff(0.0, 0.0), {}, True, 0.0, "zero_route_fee_compute_excluded"),
        (Tariff(0.0, 0.0, "mine"), {}, False, 0.0, "mine"),
        (Tariff(0.0, 8.0), USAGE, True, 0.004, "derived_usage_times_tariff"),
        (Tariff(2.0, 8.0), USAGE, False, None, "unknown"),
        (Tariff(2.0, None), USAGE, True, None, "unknown"),
        (Tariff(None, 8.0), USAGE, True, None, "unknown"),
        (Tariff(None, None, "mine"), USAGE, True, None, "mine"),
        (Tariff(2.0, 8.0), {"input_tokens": 1000}, True, None, "unknown"),
        (Tariff(2.0, 8.0), USAGE | {"output_tokens": "500"}, True, None, "unknown"),
        (Tariff(2.0, 8.0), USAGE | {"output_tokens": True}, True, None, "unknown"),
        (Tariff(2.0, 8.0), USAGE | {"output_tokens": math.nan}, True, None, "unknown"),
        (Tariff(2.0, 8.0), USAGE | {"output_tokens": math.inf}, True, None, "unknown"),
        (Tariff(2.0, 8.0), USAGE | {"output_tokens": -5}, True, None, "unknown"),
        (Tariff(2.0, 8.0), USAGE | {"output_tokens": 10**400}, True, None, "unknown"),
    ],
)
def test_a_cost_is_derived_or_unknown_and_never_guessed(
    bench: Bench,
    tariff: Tariff,
    usage: dict[str, Any],
    ok: bool,
    cost: float | None,
    basis: str,
) -> None:
    bench.tariff = tariff
    decision = answer({"no": 0.25, "yes": 0.75}, usage=usage, ok=ok)
    assert bench.run(Provider(decision), task("noul")) == RunOutcome(1, None)
    (record,) = bench.records()
    assert record.cost_usd == (None if cost is None else pytest.approx(cost, rel=1e-12))
    assert record.cost_basis == basis
    # What is unknown is charged as if it had been all of it.
    assert record.charged_usd == (0.02 if cost is None else record.cost_usd)
    assert bench.ledger.charged_usd == record.charged_usd
    assert bench.rows()[-1]["meta"] == {"task_id": "noul-1", "basis": basis}


# Stop rules


@pytest.mark.parametrize(
    ("refusal", "stop"),
    [
        (failure(status_code=401), StopReason.ACCESS_REFUSED),
        (failure(status_code=403), StopReason.ACCESS_REFUSED),
        (failure(status_code=429), StopReason.RATE_LIMITED),
        (failure("error_body_401", 200), StopReason.ACCESS_REFUSED),
        (failure("error_body_403", 200), StopReason.ACCESS_REFUSED),
        (failure("error_body_429", 200), StopReason.RATE_LIMITED),
    ],
)
def test_a_provider_that_turns_us_away_is_asked_no_more(
    bench: Bench, refusal: Decision, stop: StopReason
) -> None:
    provider = Provider(YES, refusal, YES)
    assert bench.run(provider, *many(4)) == RunOutcome(2, stop)
    assert len(provider.received) == len(bench.records()) == 2


@pytest.mark.parametrize("code", ["error_body", "error_body_500"])
def test_any_other_error_under_200_is_a_failure_like_others(bench: Bench, code: str) -> None:
    provider = Provider(failure(code, 200), YES, *[failure(code, 200)] * 3, YES)
    assert bench.run(provider, *many(6)) == RunOutcome(5, StopReason.FAILURES_IN_A_ROW)


def test_three_failures_in_a_row_end_the_run(bench: Bench) -> None:
    bad = failure(status_code=500)
    provider = Provider(bad, bad, YES, bad, RuntimeError(), failure("timeout"), YES)
    assert bench.run(provider, *many(7)) == RunOutcome(6, StopReason.FAILURES_IN_A_ROW)


@pytest.mark.parametrize("between", [YES, failure(status_code=422), answer({"no": 5})])
def test_an_answer_between_failures_starts_the_count_again(bench: Bench, between: Decision) -> None:
    bad = failure(status_code=500)
    provider = Provider(bad, bad, between, bad, bad, between, YES)
    assert bench.run(provider, *many(7)) == RunOutcome(7, None)


def test_questions_that_cannot_be_answered_are_no_outage(bench: Bench) -> None:
    assert bench.run(Provider(failure(status_code=422)), *many(5)) == RunOutcome(5, None)


def test_the_cap_ends_the_run_before_the_request(bench: Bench) -> None:
    provider = Provider(YES)
    assert bench.run(provider, *many(60)) == RunOutcome(50, StopReason.CAP_REACHED)
    assert len(provider.received) == 50
    assert bench.ledger.charged_usd == 1.0


def test_an_overcharge_is_in_ledger_and_raw_evidence_and_has_no_record(bench: Bench) -> None:
    bench.tariff = Tariff(1e6, 0.0)
    dear = answer({"no": 0.25, "yes": 0.75}, usage={"input_tokens": 1, "output_tokens": 0})
    of = task("noul")
    assert bench.run(Provider(dear), of, *many(2)) == RunOutcome(0, StopReason.OVERCHARGED)
    assert bench.records() == []
    assert bench.raw(of)["http_status"] is None
    assert bench.rows()[-1]["charged_usd"] == 1.0


def test_an_answer_by_another_model_is_recorded_and_ends_the_run(bench: Bench) -> None:
    other = answer({"no": 0.25, "yes": 0.75}, model="m-2")
    provider = Provider(YES, other, YES)
    outcome = bench.run(provider, *many(3), session=ExpectedModel("m-1"))
    assert outcome == RunOutcome(2, StopReason.IDENTITY_CHANGED)
    assert [record.model for record in bench.records()] == ["m-1", "m-2"]
    assert bench.records()[1].valid


def test_a_failure_says_nothing_about_the_model(bench: Bench) -> None:
    outcome = bench.run(Provider(RuntimeError(), YES), *many(2), session=ExpectedModel("m-1"))
    assert outcome == RunOutcome(2, None)


def test_the_first_answer_decides_where_nobody_said_who_would_answer(bench: Bench) -> None:
    other = answer({"no": 0.25, "yes": 0.75}, model="m-2")
    outcome = bench.run(Provider(other, other, YES, YES), *many(4), session=ExpectedModel(None))
    assert outcome == RunOutcome(3, StopReason.IDENTITY_CHANGED)
    assert [record.model for record in bench.records()] == ["m-2", "m-2", "m-1"]


def test_models_may_differ_where_none_is_expected(bench: Bench) -> None:
    other = answer({"no": 0.25, "yes": 0.75}, model="m-2")
    assert bench.run(Provider(YES, other), *many(3)) == RunOutcome(3, None)


# Order and durability


class Journalled:
    """Evidence that notes what is asked of it, and may refuse."""

    def __init__(self, directory: RunDirectory, log: list[str], refuses: str = "") -> None:
        self._directory = directory
        self._log = log
        self._refuses = refuses

    def hold(self, record: Record, raw: str) -> None:
        self._log.append(f"hold {record.task_id}")
        self._directory.hold(record, raw)

    def write_raw(self, task_id: str, text: str) -> str:
        self._log.append(f"raw {task_id}")
        if self._refuses == "raw":
            raise OSError(28, "No space left on device")
        return self._directory.write_raw(task_id, text)

    def append(self, record: Record) -> None:
        self._log.append(f"record {record.task_id}")
        if self._refuses == "record":
            raise OSError(28, "No space left on device")
        self._directory.append(record)


def test_each_task_is_asked_kept_recorded_and_announced_before_the_next(bench: Bench) -> None:
    log: list[str] = []

    def asked(request: Request) -> Decision:
        events = [row["event"] for row in bench.rows()]
        log.append(f"asked after {events[-1]}")
        return YES

    def announced(record: Record) -> None:
        assert record in bench.records()
        log.append(f"announced {record.task_id}")

    evidence = Journalled(bench.directory, log)
    bench.run(Provider(asked), *many(2), on_record=announced, evidence=evidence)
    assert log == [
        "asked after reserve",
        "hold t0",
        "raw t0",
        "record t0",
        "announced t0",
        "asked after reserve",
        "hold t1",
        "raw t1",
        "record t1",
        "announced t1",
    ]
    assert [row["event"] for row in bench.rows()] == ["cap", *["reserve", "settle"] * 2]


def test_raw_evidence_that_cannot_be_written_leaves_the_reservation_charged(bench: Bench) -> None:
    provider = Provider(YES)
    with pytest.raises(OSError, match="No space left"):
        bench.run(provider, *many(3), evidence=Journalled(bench.directory, [], "raw"))
    assert len(provider.received) == 1
    assert bench.ledger.charged_usd == 0.02
    assert [row["event"] for row in bench.rows()] == ["cap", "reserve"]
    assert bench.records() == []


def test_a_record_that_cannot_be_written_ends_the_run_with_its_raw_evidence(bench: Bench) -> None:
    one, *others = many(3)
    with pytest.raises(OSError, match="No space left"):
        bench.run(Provider(YES), one, *others, evidence=Journalled(bench.directory, [], "record"))
    assert bench.raw(one)["response"] == {"got": "yes"}
    assert bench.ledger.charged_usd == 0.02


def test_a_task_with_evidence_is_never_asked_and_recorded_twice(bench: Bench) -> None:
    of = task("noul")
    with pytest.raises(FileExistsError):
        bench.run(Provider(YES), of, of)
    assert len(bench.records()) == 1


def test_an_observer_that_fails_comes_after_the_record(bench: Bench) -> None:
    def fail(record: Record) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        bench.run(Provider(YES), *many(2), on_record=fail)
    assert len(bench.records()) == 1


def test_a_record_repeats_the_task_and_what_the_provider_said(bench: Bench) -> None:
    of = task("noul", group="g", split="private")
    decision = answer(
        {"no": 0.25, "yes": 0.75},
        usage={"input_tokens": 3, "cached": math.nan},
        runtime={"timings": {"ms": 1.5}},
        status_code=200,
    )
    bench.run(Provider(decision), of)
    (record,) = bench.records()
    assert (record.task_id, record.family, record.group) == ("noul-1", "family of noul", "g")
    assert (record.split, record.ts, record.model) == ("private", 7.0, "m-1")
    assert record.usage == {"input_tokens": 3, "cached": "nan"}
    assert record.runtime == {"timings": {"ms": 1.5}}
    assert record.probs == record.probs_as_returned == {"no": 0.25, "yes": 0.75}
    assert (record.correct, record.predicted, record.status_code) == (True, "yes", 200)
