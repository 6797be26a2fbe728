"""The conformance scenarios through the pinned harness's runner, with all that it leaves behind."""

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.record import Record
from jevexp.harness.runner import RunContext, RunOutcome, Tariff
from jevexp.harness.upstream import Upstream
from jevexp.harness.upstream_package import Package
from jevexp.ledger.file import FileLedger
from jevexp.store import RunDirectory
from tests.harness.test_conformance import TASKS, FakeClock, Scripted


class Played:
    """One scenario."""

    def __init__(
        self,
        package: Package,
        scenario: dict[str, Any],
        directory: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        clock = FakeClock()
        self._fix_time(package, clock, monkeypatch)
        backend = Scripted(scenario["answers"], scenario["cost_basis"], clock)
        tasks = [TASKS[task_id] for task_id in scenario["task_ids"]]
        prices = scenario["prices"]
        evidence = RunDirectory.create(directory / "run")
        harness = Upstream(package)
        self.seen: list[Record] = []
        with FileLedger(directory / "ledger.jsonl", scenario["caps"]["cap_usd"]) as ledger:
            runner = harness.runner(
                RunContext(
                    backend,
                    ledger,
                    evidence,
                    model="m-1",
                    tariff=Tariff(
                        prices["input_per_m"], prices["output_per_m"], backend.cost_basis
                    ),
                    reserve_usd=scenario["caps"]["reserve_usd"],
                    expected=None,
                    interrupts=None,
                )
            )
            self.outcome: RunOutcome = runner.run(tasks, self.seen.append)
            self.charged = ledger.charged_usd
            self.charged_here = ledger.charged_here_usd
        evidence.close()
        self.records: list[Record] = list(evidence.records())
        summary = harness.summarize(tasks, self.records, ledger_charged_usd=self.charged)
        self.summary = summary.plain()
        self.rows = [
            json.loads(line) for line in (directory / "ledger.jsonl").read_text().splitlines()
        ]
        self.raw = {path.name: path.read_text() for path in (directory / "run/raw").iterdir()}

    @staticmethod
    def _fix_time(package: Package, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
        module = sys.modules[package.Runner.__module__]
        fixed = types.SimpleNamespace(
            perf_counter=clock, time=lambda: 1.0, sleep=lambda seconds: None
        )
        monkeypatch.setattr(module, "time", fixed)
