"""Requests go out in dataset order, answers come as they like, records are in order again."""

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jevexp.core.decision import Decision
from jevexp.core.record import Record
from jevexp.harness.runner import RunContext, Runner, Tariff
from jevexp.ledger.file import FileLedger
from jevexp.store import RunDirectory
from tests.harness.concurrent.bench import LONG, YES, Bench, Gates, Provider, many
from tests.support.tasks import answer, failure


def ids(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


@pytest.mark.parametrize("concurrency", [2, 3, 8])
def test_as_many_requests_are_under_way_as_was_asked_for_and_never_more(
    bench: Bench, concurrency: int
) -> None:
    full = threading.Barrier(concurrency)

    def step(number: int) -> Decision:
        if number < concurrency:
            full.wait(LONG)
        return YES

    provider = Provider(step)
    outcome = bench.run(provider, many(40), concurrency)
    assert (outcome.attempted, outcome.stop) == (40, None)
    assert provider.most == concurrency


def test_a_request_that_never_ends_does_not_keep_the_process(bench: Bench) -> None:
    def step(number: int) -> Decision:
        del number
        # The process waits for no such thread at its end.
        assert threading.current_thread().daemon
        return YES

    bench.run(Provider(step), many(4), 2)
    assert [record.ok for record in bench.directory.records()] == [True] * 4


def test_answers_in_reverse_become_records_in_order(bench: Bench) -> None:
    gates = Gates(5)
    gates.open(4)

    def step(number: int) -> Decision:
        gates.wait(number % 4 + 1 if number < 4 else 4)
        if number < 4:
            gates.open(number)
        return YES

    provider = Provider(step)
    bench.run(provider, many(12), 4)
    assert bench.ids() == bench.recorded == ids(12)
    assert not (bench.directory.path / "early.jsonl").exists()
    assert not (bench.directory.path / "pending").exists()


def test_requests_and_reservations_are_in_order(bench: Bench) -> None:
    provider = Provider(lambda number: YES)
    bench.run(provider, many(60), 4)
    assert [row["meta"]["task_id"] for row in bench.rows("reserve")] == ids(60)
    # Each is sent when it is its turn; which of those that wait for an answer came first is theirs.
    places = {number: place for place, number in enumerate(provider.sent)}
    assert all(abs(places[number] - number) < 4 for number in range(60))


def test_every_request_is_reserved_for_before_it_is_sent(bench: Bench) -> None:
    def step(number: int) -> Decision:
        text = bench.ledger_path.read_text()
        assert f'"task_id": "t{number}", "adapter"' in text
        return YES

    bench.run(Provider(step), many(20), 4)
    assert all(record.ok for record in bench.directory.records())
    assert bench.open_reservations() == 0


def test_a_record_that_comes_before_its_turn_is_on_disk_at_once(bench: Bench) -> None:
    early = bench.directory.path / "early.jsonl"
    seen: list[list[str]] = []
    last = threading.Event()

    def step(number: int) -> Decision:
        if number == 0:
            last.wait(LONG)
            while not early.exists() or len(early.read_text().splitlines()) < 5:
                pass
            seen.append([record.task_id for record in bench.directory.early_records()])
            assert bench.ids() == []
        elif number == 5:
            last.set()
        return YES

    bench.run(Provider(step), many(6), 2)
    assert [sorted(one) for one in seen] == [ids(6)[1:]]
    assert bench.ids() == ids(6)
    assert list(bench.directory.early_records()) == []


def test_answers_run_ahead_of_a_slow_one_only_so_far(bench: Bench) -> None:
    ahead = 128
    others = threading.Semaphore(0)

    def step(number: int) -> Decision:
        if number:
            others.release()
            return YES
        for _ in range(ahead - 1):
            assert others.acquire(timeout=LONG)
        assert not others.acquire(timeout=0.2)
        return YES

    assert bench.run(Provider(step), many(200), 2).attempted == 200
    assert all(record.ok for record in bench.directory.records())


DECISIONS = [
    YES,
    answer({"no": 0.5, "yes": 0.9}),
    answer({"no": 0.5, "yes": 0.5}, model="m-2"),
    failure(status_code=500),
    failure(status_code=422),
    failure(status_code=429),
    failure("timeout"),
]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(DECISIONS), min_size=1, max_size=12),
    st.integers(2, 6),
)
def test_the_records_are_those_of_one_after_the_other(
    tmp_path_factory: pytest.TempPathFactory, decisions: list[Decision], concurrency: int
) -> None:
    folder = tmp_path_factory.mktemp("both")
    tasks = many(len(decisions))
    bench = Bench(folder)
    several = bench.run(Provider(lambda number: decisions[number]), tasks, concurrency)
    directory = RunDirectory.create(folder / "one")
    with FileLedger(folder / "one.jsonl", 100.0) as ledger:
        runner = Runner(
            RunContext(
                Provider(lambda number: decisions[number]),
                ledger,
                directory,
                model="m-1",
                tariff=Tariff(),
                reserve_usd=0.02,
            )
        )
        one = runner.run(tasks)
    directory.release()
    bench.directory.release()
    found, expected = records(bench.directory.path), records(directory.path)
    assert found[: len(expected)] == expected
    assert several.stop == one.stop
    # At a stop, what is under way comes to its record as well.
    assert len(found) - len(expected) <= 2 * concurrency if one.stop else found == expected
    assert several.attempted == len(found)
    assert bench.open_reservations() == 0
    bench.ledger.close()


def records(path: Path) -> list[dict[str, Any]]:
    return [without_times(record) for record in RunDirectory(path).records()]


def without_times(record: Record) -> dict[str, Any]:
    fields = record.line()
    del fields["ts"], fields["latency_s"]
    return fields
