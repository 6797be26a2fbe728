"""A pytest plugin that notes which tests run which lines, and how long each test takes.

It writes into the folder named by `JEVEXP_MUTANTS_MAP`: coverage's data, one file a process, with
a context `TEST|PHASE` for each phase of each test; and `durations.json`, seconds by test.
"""

import json
import os
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest
from coverage import Coverage

PLACE = "JEVEXP_MUTANTS_MAP"
DURATIONS = "durations.json"


class Covering:
    """Coverage of one process that runs tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._coverage = Coverage(
            data_file=str(_folder() / "coverage"),
            data_suffix=True,
            source=[str(config.rootpath / "src" / "jevexp")],
            config_file=False,
        )
        # Pytest makes an error of each.
        self._coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self._coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(f"{item.nodeid}|setup")
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(f"{item.nodeid}|call")
        yield

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(f"{item.nodeid}|teardown")
        yield
        self._coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()


class Durations:
    """How long each test takes, in the process that the workers report to."""

    def __init__(self) -> None:
        self._durations: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # What is skipped, or fails anyway, sees no fault.
        before = self._durations.get(report.nodeid, 0.0)
        passed = report.outcome == "passed"
        self._durations[report.nodeid] = before + (report.duration if passed else inf)

    def pytest_sessionfinish(self) -> None:
        usable = {test: s for test, s in self._durations.items() if s != inf}
        (_folder() / DURATIONS).write_text(json.dumps(usable))


def pytest_configure(config: pytest.Config) -> None:
    """Each process has its part."""
    is_worker = hasattr(config, "workerinput")
    if is_worker or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Covering(config))
    if not is_worker:
        config.pluginmanager.register(Durations())


def _folder() -> Path:
    return Path(os.environ[PLACE])
