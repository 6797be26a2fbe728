"""Costs from usage and tariff, and charges above their reservation."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.decision import Decision, Request
from jevexp.store.directory import LEDGER, MANIFEST, RESULTS
from jevexp.verification import Result, verify_run
from tests.support.forgery import edit, edit_line, lines, reseal
from tests.support.in_process import run_here
from tests.verification.test_run import complaints

PRICED = (
    "dataset=demo", "backend=python", "backend.factory=tests.verification.test_costs:make",
    "model=unclaimed", "model.alias=mine", "caps.limit=6", "pricing.name=mine",
    "pricing.input_per_m=10", "pricing.output_per_m=20", "pricing.basis=null",
)  # fmt: skip


def make(dear: int = 100) -> object:
    """A model that uses a thousand tokens a question, and very many for the one that is dear."""
    asked = 0

    def decide(request: Request) -> Decision:
        nonlocal asked
        asked += 1
        options = request.question.options
        tokens = 1000 if asked != dear else 10_000_000
        return Decision(
            ok=True,
            # As the description of a function names it.
            model="tests.verification.test_costs:make",
            probs=dict.fromkeys(options, 1 / len(options)),
            usage={"input_tokens": tokens, "output_tokens": 1},
            request=request.wire(),
            response={"probabilities": dict.fromkeys(options, 1 / len(options))},
        )

    return decide


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a price; not to be changed."""
    return run_here(tmp_path_factory.mktemp("priced"), *PRICED)


def test_derived_costs_are_computed_again(priced: Path) -> None:
    report = verify_run(priced)

    assert complaints(report) == []
    assert lines(priced, RESULTS)[0]["cost_usd"] == pytest.approx(0.01002)
    assert report.check("costs").count == 6


def test_fewer_tokens_than_were_paid_for(priced: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(priced, tmp_path / "run"))
    edit_line(run, RESULTS, 1, lambda record: record["usage"].update(input_tokens=1))
    reseal(run)

    (first, *_) = verify_run(run).check("costs").failures
    assert first.message.startswith("cost_usd: 0.01002, computed 3.0")


def test_a_charge_above_its_reservation_leaves_no_record_and_verifies(tmp_path: Path) -> None:
    run = run_here(tmp_path, *PRICED, "+backend.options={dear: 4}")

    report = verify_run(run)

    assert complaints(report) == []
    assert len(lines(run, RESULTS)) == 3
    assert len(list((run / "raw").iterdir())) == 4
    (note,) = [note for note in report.check("raw files").notes if note.startswith("raw/")]
    assert note.endswith("of a task that was cut off before its record")

    edit(run, MANIFEST, lambda manifest: manifest.update(stop_reason="cap_reached"))
    reseal(run)
    failed = {check.name for check in verify_run(run).checks if check.failed}
    assert {"ledger", "raw files"} <= failed
    assert LEDGER in {failure.file for failure in verify_run(run).check("ledger").failures}


class Own:
    """A backend that says in its own words what it sent and got."""

    name = "own"
    cost_basis = "by_the_hour"

    def open(self, log_directory: Path) -> "Own":
        return self

    def close(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        return {"model": "own-1"}

    def decide(self, request: Request) -> Decision:
        options = request.question.options
        return Decision(
            ok=True,
            model="own-1",
            probs=dict.fromkeys(options, 1 / len(options)),
            request={"prompt": "…", "label": "mine", "split": 3},
            response={"probabilities": [0.5], "seed": 1},
        )


def test_a_backend_in_its_own_words_is_scored_again(tmp_path: Path) -> None:
    run = run_here(
        tmp_path, *PRICED[:1], "backend=python",
        "backend.factory=tests.verification.test_costs:Own", "model=unclaimed",
        "model.alias=own", "caps.limit=3",
    )  # fmt: skip

    report = verify_run(run)

    assert complaints(report) == []
    assert report.check("answers").result is Result.NOT_CHECKED
    assert report.check("scores").count == 3
    assert report.check("requests").notes == [
        "of 3 requests only what a person's own code says it was sent"
    ]
