"""What the stop rules mean for requests that are under way."""

import threading
from pathlib import Path

import pytest

from jevexp.core.decision import Decision
from jevexp.harness.runner import Tariff
from jevexp.harness.stops import ExpectedModel, StopReason
from tests.harness.concurrent.bench import LONG, YES, Bench, Gates, Provider, many
from tests.support.tasks import answer, failure

BAD = failure(status_code=500)


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
def test_once_we_are_turned_away_what_is_under_way_is_recorded_and_nothing_else_sent(
    bench: Bench, refusal: Decision, stop: StopReason
) -> None:
    all_there = threading.Barrier(4)
    turned_away = threading.Event()

    def step(number: int) -> Decision:
        all_there.wait(LONG)
        if number == 2:
            turned_away.set()
            return refusal
        turned_away.wait(LONG)
        # Until the refusal has been noticed.
        while threading.active_count() > 1 and not bench.rows("settle"):
            pass
        return YES

    provider = Provider(step)
    outcome = bench.run(provider, many(100), 4)
    assert (outcome.attempted, outcome.stop) == (4, stop)
    assert bench.ids() == ["t0", "t1", "t2", "t3"]
    assert sorted(provider.sent) == [0, 1, 2, 3]


def test_what_was_reserved_and_not_sent_is_given_back(bench: Bench) -> None:
    outcome = bench.run(Provider(lambda number: failure(status_code=401)), many(100), 4)
    assert outcome.stop is StopReason.ACCESS_REFUSED
    assert bench.open_reservations() == 0
    unsent = [row for row in bench.rows("settle") if row["meta"]["basis"] == "not_sent"]
    assert {row["charged_usd"] for row in unsent} <= {0.0}
    assert len(unsent) == len(bench.rows("reserve")) - outcome.attempted
    assert bench.ledger.charged_usd == pytest.approx(0.02 * outcome.attempted)


def test_failures_in_a_row_are_counted_in_dataset_order(bench: Bench) -> None:
    gates = Gates(1)
    failed = threading.Semaphore(0)

    def step(number: int) -> Decision:
        if number % 2 == 0:
            failed.release()
            return BAD
        if number == 1:
            for _ in range(3):
                assert failed.acquire(timeout=LONG)
            gates.open(0)
        gates.wait(0)
        return YES

    outcome = bench.run(Provider(step), many(6), 6)
    assert (outcome.attempted, outcome.stop) == (6, None)


def test_three_failures_in_a_row_stop_and_what_is_under_way_is_recorded(bench: Bench) -> None:
    provider = Provider(lambda number: BAD if number in (3, 4, 5) else YES)
    outcome = bench.run(provider, many(500), 4)
    assert outcome.stop is StopReason.FAILURES_IN_A_ROW
    assert 6 <= outcome.attempted == len(provider.sent) < 500
    assert bench.ids() == [f"t{number}" for number in range(outcome.attempted)]


def test_another_model_stops(bench: Bench) -> None:
    other = answer({"no": 0.25, "yes": 0.75}, model="m-2")
    provider = Provider(lambda number: other if number == 7 else YES)
    outcome = bench.run(provider, many(500), 4, session=ExpectedModel("m-1"))
    assert outcome.stop is StopReason.IDENTITY_CHANGED
    assert outcome.attempted == len(provider.sent) < 500


def test_the_first_rule_in_dataset_order_is_the_reason(bench: Bench) -> None:
    arrived = threading.Event()

    def step(number: int) -> Decision:
        if number == 3:
            arrived.set()
            return failure(status_code=429)
        arrived.wait(LONG)
        return BAD

    assert bench.run(Provider(step), many(50), 4).stop is StopReason.FAILURES_IN_A_ROW


# The cap


def test_the_cap_ends_the_run_and_is_used_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path, cap_usd=1.0)
    provider = Provider(lambda number: YES)
    outcome = bench.run(provider, many(60), 4)
    assert (outcome.attempted, outcome.stop) == (50, StopReason.CAP_REACHED)
    assert len(provider.sent) == 50
    assert bench.ledger.charged_usd == 1.0
    bench.ledger.close()


def test_near_the_cap_fewer_are_asked_at_once_instead_of_ending(tmp_path: Path) -> None:
    bench = Bench(tmp_path, cap_usd=0.05)
    bench.tariff = Tariff(0.0, 0.0)
    provider = Provider(lambda number: YES)
    outcome = bench.run(provider, many(60), 8)
    assert (outcome.attempted, outcome.stop) == (60, None)
    assert provider.most <= 2
    bench.ledger.close()


def test_an_overcharged_answer_has_no_record_and_those_under_way_have(bench: Bench) -> None:
    bench.tariff = Tariff(1e6, 0.0)
    all_there = threading.Barrier(4)
    cheap = answer({"no": 0.25, "yes": 0.75}, usage={"input_tokens": 0, "output_tokens": 0})
    dear = answer({"no": 0.25, "yes": 0.75}, usage={"input_tokens": 1, "output_tokens": 0})

    def step(number: int) -> Decision:
        if number < 4:
            all_there.wait(LONG)
        return dear if number == 1 else cheap

    provider = Provider(step)
    outcome = bench.run(provider, many(500), 4)
    assert outcome.stop is StopReason.OVERCHARGED
    assert outcome.attempted == len(provider.sent) - 1
    assert bench.ids()[:3] == ["t0", "t2", "t3"]
    assert len(list(bench.directory.raw.iterdir())) == len(provider.sent)
    assert bench.open_reservations() == 0
