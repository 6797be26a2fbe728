"""A run whose ledger gets out of reach: nothing more is sent, and nothing answered is lost."""

import fcntl
import json
from contextlib import closing
from pathlib import Path

import pytest

from jevexp.core.decision import Decision
from jevexp.harness.concurrent import ConcurrentRunner
from jevexp.harness.runner import RunContext, Runner, RunOutcome, Tariff
from jevexp.harness.stops import StopReason
from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import LedgerUnavailable
from jevexp.store import RunDirectory
from tests.harness.concurrent.bench import YES, Provider, many


class Holder:
    """Somebody else who takes the ledger's lock and keeps it until it is closed."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def close(self) -> None:
        self._file.close()


@pytest.mark.parametrize("concurrency", [1, 2])
def test_a_ledger_out_of_reach_ends_the_run_after_the_answers_that_are_there(
    tmp_path: Path, concurrency: int
) -> None:
    path = tmp_path / "ledger.jsonl"
    holders: list[Holder] = []

    def step(number: int) -> Decision:
        if number == 2:
            holders.append(Holder(path))
        return YES

    provider = Provider(step)
    directory = RunDirectory.create(tmp_path / "run")
    with FileLedger(path, 1.0, lock_timeout_s=0.1) as ledger, closing(directory):
        context = RunContext(
            provider, ledger, directory, model="m-1", tariff=Tariff(), reserve_usd=0.02
        )
        runner: Runner | ConcurrentRunner = (
            Runner(context)
            if concurrency == 1
            else ConcurrentRunner(context, concurrency=concurrency)
        )
        outcome: RunOutcome = runner.run(many(20))
        assert outcome.stop is StopReason.LEDGER_UNAVAILABLE
        # Whatever was sent has its record.
        assert outcome.attempted == len(provider.sent) >= 3
        records = list(directory.records())
        assert [record.task_id for record in records] == [f"t{n}" for n in sorted(provider.sent)]
        for holder in holders:
            holder.close()
    # What could not be settled at the time is settled at the end.
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    settled = [row["meta"]["task_id"] for row in rows if row["event"] == "settle"]
    assert sorted(settled) == sorted(record.task_id for record in records)


def test_a_settlement_of_another_run_is_not_put_off(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with FileLedger(path, 1.0) as other, FileLedger(path, 1.0, lock_timeout_s=0.0) as ledger:
        name = other.reserve(0.25, {})
        with closing(Holder(path)), pytest.raises(LedgerUnavailable, match="has held the lock"):
            ledger.settle(name, 0.0, {})
        assert other.charged_usd == 0.25


def test_a_settlement_that_comes_after_a_release_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with FileLedger(path, 1.0) as person, FileLedger(path, 1.0, lock_timeout_s=0.0) as ledger:
        name = ledger.reserve(0.25, {})
        with closing(Holder(path)):
            ledger.settle(name, 0.125, {})
        person.settle(name, 0.0, {})
        ledger.reserve(0.5, {})
        assert person.charged_usd == 0.5
