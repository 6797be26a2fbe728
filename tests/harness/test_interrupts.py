"""Real signals at every step of a task: nothing answered is lost, nothing in flight is free."""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.decision import Decision, Request
from jevexp.core.record import Record
from jevexp.harness.interrupts import Interrupted, Interrupts
from jevexp.harness.runner import RunContext, Runner, RunOutcome, Tariff
from jevexp.ledger.file import FileLedger
from jevexp.store import RunDirectory
from tests.support.provider import Provider
from tests.support.tasks import answer, task

TASKS = [task("noul", id=f"t{number}") for number in range(4)]
YES = answer({"no": 0.25, "yes": 0.75})
# Before the provider has answered, and after.
BEFORE = ("estimate", "before reserve", "after reserve", "prepare", "asked")
AFTER = (
    "hold",
    "raw",
    "after raw",
    "before settle",
    "settled",
    "before record",
    "recorded",
    "announced",
)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A first SIGINT waits for the task in flight; these do not.
HURRIED = (signal.SIGTERM, signal.SIGHUP)


class Trap:
    """Sends this process a signal when the third task comes to a step."""

    def __init__(self, step: str, signum: signal.Signals, times: int = 1) -> None:
        self._step = step
        self._signum = signum
        self._times = times
        self.seen: list[str] = []

    def step(self, name: str) -> None:
        self.seen.append(name)
        if name == self._step and self.seen.count(name) == 3:
            for _ in range(self._times):
                os.kill(os.getpid(), self._signum)


class TrappedProvider(Provider):
    def __init__(self, trap: Trap, *steps: Any) -> None:
        super().__init__(*steps)
        self._trap = trap

    def reserve_estimate(self, request: Request) -> float | None:
        self._trap.step("estimate")
        return None

    def prepare(self, request: Request) -> None:
        self._trap.step("prepare")

    def decide(self, request: Request) -> Decision:
        self._trap.step("asked")
        return super().decide(request)


class TrappedLedger(FileLedger):
    def __init__(self, path: Path, trap: Trap) -> None:
        self._trap = trap
        super().__init__(path, 1.0)

    def reserve(self, amount_usd: float, meta: Mapping[str, Any]) -> str:
        self._trap.step("before reserve")
        reservation = super().reserve(amount_usd, meta)
        self._trap.step("after reserve")
        return reservation

    def settle(self, reservation_id: str, charged_usd: float, meta: Mapping[str, Any]) -> None:
        self._trap.step("before settle")
        super().settle(reservation_id, charged_usd, meta)
        self._trap.step("settled")


class TrappedFiles(RunDirectory):
    trap: Trap

    def hold(self, record: Record, raw: str) -> None:
        self.trap.step("hold")
        super().hold(record, raw)

    def write_raw(self, task_id: str, text: str) -> str:
        self.trap.step("raw")
        digest = super().write_raw(task_id, text)
        self.trap.step("after raw")
        return digest

    def append(self, record: Record) -> None:
        self.trap.step("before record")
        super().append(record)
        self.trap.step("recorded")


class Bench:
    """A run with a trap in it."""

    def __init__(self, folder: Path, trap: Trap, provider: Provider | None = None) -> None:
        self.trap = trap
        self.notices = 0
        self.provider = provider or TrappedProvider(trap, YES)
        self.directory = TrappedFiles.create(folder / "run")
        self.directory.trap = self.trap
        self.ledger = TrappedLedger(folder / "ledger.jsonl", trap)

    def run(self, count: int = len(TASKS)) -> RunOutcome:
        with closing(self.directory), Interrupts(self._notice) as interrupts:
            runner = Runner(
                RunContext(
                    self.provider,
                    self.ledger,
                    self.directory,
                    model="m-1",
                    tariff=Tariff(0.0, 0.0),
                    reserve_usd=0.02,
                    interrupts=interrupts,
                )
            )
            return runner.run(TASKS[:count], lambda record: self.trap.step("announced"))

    def _notice(self) -> None:
        self.notices += 1

    def check(self, *, recorded: int, charged: float) -> None:
        records = list(self.directory.records())
        assert [record.task_id for record in records] == [of.id for of in TASKS[:recorded]]
        raw = {path.stem for path in self.directory.raw.iterdir()}
        assert len(raw) == recorded
        assert self.ledger.charged_usd == charged
        self.ledger.close()


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The handlers of before are back afterwards."""
    before = {signum: signal.getsignal(signum) for signum in SIGNALS}
    yield
    assert {signum: signal.getsignal(signum) for signum in SIGNALS} == before


@pytest.mark.parametrize("signum", HURRIED)
@pytest.mark.parametrize("step", BEFORE)
def test_before_the_answer_the_task_has_no_record_and_stays_reserved(
    tmp_path: Path, step: str, signum: signal.Signals
) -> None:
    bench = Bench(tmp_path, Trap(step, signum))
    with pytest.raises(Interrupted) as raised:
        bench.run()
    assert raised.value.exit_status == 128 + signum
    assert str(raised.value) == signum.name
    bench.check(recorded=2, charged=0.02)


@pytest.mark.parametrize("step", BEFORE)
def test_a_first_sigint_before_the_answer_waits_for_its_record(tmp_path: Path, step: str) -> None:
    bench = Bench(tmp_path, Trap(step, signal.SIGINT))
    with pytest.raises(Interrupted) as raised:
        bench.run()
    assert raised.value.exit_status == 130
    assert bench.notices == 1
    bench.check(recorded=3, charged=0.0)


@pytest.mark.parametrize("signum", SIGNALS)
@pytest.mark.parametrize("step", AFTER)
def test_after_the_answer_the_task_is_recorded_first(
    tmp_path: Path, step: str, signum: signal.Signals
) -> None:
    bench = Bench(tmp_path, Trap(step, signum))
    with pytest.raises(Interrupted):
        bench.run()
    assert len(bench.provider.received) == 3
    bench.check(recorded=3, charged=0.0)


@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_a_second_signal_at_once_costs_no_evidence_either(tmp_path: Path, step: str) -> None:
    bench = Bench(tmp_path, Trap(step, signal.SIGINT, times=2))
    with pytest.raises(Interrupted):
        bench.run()
    if step in BEFORE:
        bench.check(recorded=2, charged=0.02)
    else:
        bench.check(recorded=3, charged=0.0)


@pytest.mark.parametrize("step", AFTER)
def test_a_signal_during_the_last_task_comes_too_late_to_interrupt_the_run(
    tmp_path: Path, step: str
) -> None:
    bench = Bench(tmp_path, Trap(step, signal.SIGTERM))
    assert bench.run(count=3) == RunOutcome(3, None)
    bench.check(recorded=3, charged=0.0)


def test_a_provider_that_swallows_everything_delays_the_interruption_by_one_record(
    tmp_path: Path,
) -> None:
    def swallow(request: Request) -> Decision:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            pytest.fail("the signal did not raise")
        except Interrupted:
            return YES

    trap = Trap("never", signal.SIGINT)
    bench = Bench(tmp_path, trap, Provider(swallow))
    with pytest.raises(Interrupted):
        bench.run()
    bench.check(recorded=1, charged=0.0)


def test_a_second_signal_does_not_break_off_what_a_provider_cleans_up(tmp_path: Path) -> None:
    cleaned: list[str] = []

    def interrupted_twice(request: Request) -> Decision:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            cleaned.append("all of it")
        return YES

    bench = Bench(tmp_path, Trap("never", signal.SIGINT), Provider(interrupted_twice))
    with pytest.raises(Interrupted):
        bench.run()
    assert cleaned == ["all of it"]
    bench.check(recorded=0, charged=0.02)


def test_an_interruption_is_no_exception_that_a_provider_catches_by_the_way() -> None:
    assert not issubclass(Interrupted, Exception)


def test_a_signal_that_came_before_is_raised_as_soon_as_something_waits() -> None:
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted) as raised, interrupts.waiting():
            pytest.fail("waited although interrupted")
        assert raised.value.exit_status == 143
        with pytest.raises(Interrupted):
            interrupts.check()


def test_after_waiting_signals_are_held_back_again() -> None:
    with Interrupts() as interrupts:
        with interrupts.waiting():
            pass
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Interrupted):
            interrupts.check()


@pytest.mark.parametrize("signum", SIGNALS)
def test_with_no_task_in_flight_every_signal_ends_the_wait(signum: signal.Signals) -> None:
    went_on = False
    with Interrupts() as interrupts, pytest.raises(Interrupted), interrupts.waiting():  # noqa: PT012
        os.kill(os.getpid(), signum)
        went_on = True
    assert not went_on


def test_a_lost_terminal_changes_nothing_where_that_was_asked_for() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts, interrupts.waiting():
            os.kill(os.getpid(), signal.SIGHUP)
        assert interrupts.pending is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_outside_the_main_thread_nothing_is_installed() -> None:
    handler = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def elsewhere() -> None:
        with Interrupts() as interrupts, interrupts.waiting():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [handler]
