"""Runs with several requests under way verify as well, however they ended."""

from pathlib import Path

import pytest

from jevexp.store.directory import RESULTS
from jevexp.verification import State, verify_run
from tests.support.forgery import lines, reseal, write_lines
from tests.support.in_process import run_here
from tests.support.scripted_llama import Answer
from tests.support.systemone import ENDPOINT, respond, scripted_systemone
from tests.verification.test_providers import systemone, turns, verified

AT_ONCE = "runner.concurrency=4"


def test_a_complete_run(tmp_path: Path) -> None:
    run = run_here(tmp_path, "dataset=demo", "backend=fake", "backend.mode=noise", AT_ONCE)

    assert verified(run).check("attempts").count == 48


@pytest.mark.parametrize("cap", ["0.2", "0.31"])
def test_a_run_that_the_cap_ended(tmp_path: Path, cap: str) -> None:
    run = run_here(tmp_path, "dataset=demo", "backend=fake", AT_ONCE, f"caps.cap_usd={cap}")

    assert verified(run).status == "incomplete"


@pytest.mark.parametrize("status", [429, 500])
def test_a_run_that_failures_ended(tmp_path: Path, status: int) -> None:
    with scripted_systemone() as server:
        refused = Answer({"detail": "no"}, status=status)
        server.answers[ENDPOINT] = turns(*[respond] * 5, *[refused] * 40)
        run = run_here(tmp_path, *systemone(server), "caps.limit=40", AT_ONCE)

    assert verified(run).status == "incomplete"


def test_a_record_that_is_missing_in_the_middle_is_seen(tmp_path: Path) -> None:
    run = run_here(tmp_path, "dataset=demo", "backend=fake", AT_ONCE)
    records = lines(run, RESULTS)
    write_lines(run, RESULTS, [*records[:3], *records[4:]])
    reseal(run)

    report = verify_run(run)
    assert report.state is State.FAILED
    assert "was passed over" in report.check("attempts").failures[0].message
