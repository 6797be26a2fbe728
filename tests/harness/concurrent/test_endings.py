"""Signals, full disks and crashes while requests are under way."""

import errno
import os
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from jevexp.core.decision import Decision
from jevexp.core.record import Record
from jevexp.harness.interrupts import Interrupted, Interrupts
from tests.harness.concurrent.bench import LONG, YES, Bench, Gates, Provider, many


def test_a_first_sigint_lets_what_is_under_way_come_to_its_record(bench: Bench) -> None:
    all_there = threading.Barrier(4)
    signalled = threading.Event()

    def step(number: int) -> Decision:
        all_there.wait(LONG)
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
            while interrupts.pending is None:
                pass
            signalled.set()
        signalled.wait(LONG)
        return YES

    provider = Provider(step)
    with Interrupts() as interrupts, pytest.raises(Interrupted):
        bench.run(provider, many(100), 4, interrupts=interrupts)
    assert bench.ids() == ["t0", "t1", "t2", "t3"]
    assert sorted(provider.sent) == [0, 1, 2, 3]
    assert bench.open_reservations() == 0


def test_a_signal_after_the_last_request_changes_nothing(bench: Bench) -> None:
    def step(number: int) -> Decision:
        if number == 3:
            os.kill(os.getpid(), signal.SIGINT)
            while interrupts.pending is None:
                pass
        return YES

    with Interrupts() as interrupts:
        assert bench.run(Provider(step), many(4), 4, interrupts=interrupts).attempted == 4


@pytest.mark.parametrize("signals", [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM,)])
def test_whoever_is_in_a_hurry_gets_what_is_answered_and_nothing_is_written_later(
    bench: Bench, signals: Sequence[signal.Signals]
) -> None:
    gates = Gates(1)
    ended = threading.Semaphore(0)

    def step(number: int) -> Decision:
        if number == 1:
            # The answers to 2 to 7 are there; 0 is not, and neither is this one.
            while len(bench.rows("settle")) < 6:
                pass
            for one in signals:
                os.kill(os.getpid(), one)
                # Two of a kind that arrive together are one.
                while interrupts.pending is None:
                    pass
        if number < 2:
            gates.wait(0)
            ended.release()
        return YES

    with Interrupts() as interrupts, pytest.raises(Interrupted):
        bench.run(Provider(step), many(8), 4, interrupts=interrupts)
    assert bench.ids() == [f"t{number}" for number in range(2, 8)]
    before = everything(bench)
    gates.open(0)
    for _ in range(2):
        assert ended.acquire(timeout=LONG)
    time.sleep(0.05)
    assert everything(bench) == before
    assert bench.open_reservations() == 2


class FullDisk:
    """Evidence whose results take one write, and half of the next."""

    def __init__(self, bench: Bench) -> None:
        self._directory = bench.directory
        self._writes = 0

    def append_all(self, records: Sequence[Record]) -> None:
        self._writes += 1
        if self._writes > 1:
            with (self._directory.path / "results.jsonl").open("a") as results:
                results.write('{"task_id": "t')
            raise OSError(errno.ENOSPC, "No space left on device")
        self._directory.append_all(records)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._directory, name)


def test_after_a_write_that_failed_nothing_is_appended(bench: Bench) -> None:
    with pytest.raises(OSError, match="No space left"):
        bench.run(Provider(lambda number: YES), many(300), 4, evidence=FullDisk(bench))
    results = (bench.directory.path / "results.jsonl").read_text()
    assert results.endswith('{"task_id": "t')
    assert bench.ids() == bench.recorded


def test_a_ledger_that_fails_ends_the_run_after_what_is_under_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = bench.ledger.reserve

    def failing(usd: float, meta: dict[str, Any]) -> str:
        if meta["task_id"] == "t20":
            raise OSError(errno.EIO, "Input/output error")
        return reserve(usd, meta)

    monkeypatch.setattr(bench.ledger, "reserve", failing)
    with pytest.raises(OSError, match="Input/output"):
        bench.run(Provider(lambda number: YES), many(100), 4)
    attempted = len(bench.ids())
    assert bench.ids() == [f"t{number}" for number in range(attempted)]
    assert attempted <= 20
    assert bench.open_reservations() == 0


def test_a_provider_that_ends_the_process_ends_the_run(bench: Bench) -> None:
    def step(number: int) -> Decision:
        if number == 5:
            raise SystemExit(3)
        return YES

    with pytest.raises(SystemExit):
        bench.run(Provider(step), many(100), 4)
    assert "t5" not in bench.ids()
    assert bench.open_reservations() == 1


def everything(bench: Bench) -> dict[str, bytes]:
    paths = [bench.ledger_path, *bench.directory.path.rglob("*")]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}
