"""Our harness against the pinned one, where that is really here; skipped with the reason else.

It is here when it is installed (`pip install 'jevexp[upstream]'`), or when the environment variable
JEVEXP_TEST_UPSTREAM names a clean git checkout at the pin.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from jevexp.errors import InputError
from jevexp.harness.upstream_package import Package, find, load
from tests.harness.test_conformance import REASONS, SCENARIOS, approx
from tests.harness.upstream import both
from tests.harness.upstream.scenarios import Played

CHECKOUT = os.environ.get("JEVEXP_TEST_UPSTREAM")


@pytest.fixture
def pinned() -> Package:
    try:
        return load(find(CHECKOUT))
    except InputError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_the_pinned_harness_gives_the_vectors(
    scenario: dict[str, Any],
    pinned: Package,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = Played(pinned, scenario, tmp_path, monkeypatch)
    expected = scenario["expect"]
    assert [dict(record.line(), ts=0.0) for record in played.records] == approx(
        [{**record, "ts": 0.0} for record in expected["records"]]
    )
    assert played.raw == expected["raw"]
    assert played.summary == approx(expected["summary"])
    assert played.charged == played.charged_here == approx(expected["charged_usd"])
    if expected["stop"]:
        (line,) = expected["stop"]
        assert played.outcome.stop in next(why for words, why in REASONS.items() if words in line)
    else:
        assert played.outcome.stop is None


@pytest.mark.usefixtures("pinned")
def test_both_harnesses_agree_on_the_demo_tasks(tmp_path: Path) -> None:
    path = [f"harness.path='{Path(CHECKOUT).absolute()}'"] if CHECKOUT else []
    native, upstream = both.run_both(tmp_path, "dataset=demo", "backend.mode=noise", upstream=path)
    assert both.records(upstream) == approx(both.records(native))
    assert both.summary(upstream) == approx(both.summary(native))
    assert both.raw(upstream) == both.raw(native)
    assert both.ledger(upstream) == approx(both.ledger(native))
