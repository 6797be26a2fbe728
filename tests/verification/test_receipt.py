"""A receipt vouches for one run, says nothing of its tasks, and catches every later change."""

import json
import random
import shutil
from pathlib import Path

import pytest

from jevexp.datasets import load_dataset
from jevexp.errors import InputError
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import RESULTS
from jevexp.verification import Report, State, verify_run
from jevexp.verification.receipt import check_receipt, make_receipt, read_receipt, write
from tests.support.compose import compose
from tests.support.forgery import change_one_byte, edit_line, reseal


def held(run: Path, receipt: Path) -> Report:
    return check_receipt(verify_run(run), read_receipt(receipt))


@pytest.fixture
def receipt(noisy: Path, tmp_path: Path) -> Path:
    path = tmp_path / "receipt.json"
    path.write_text(write(make_receipt(noisy)))
    return path


def test_the_run_that_it_was_made_of_fits(run: Path, receipt: Path) -> None:
    report = held(run, receipt)

    assert report.state is State.VERIFIED
    assert report.not_covered == ()
    assert report.checks[-1].name == "receipt"
    assert report.checks[-1].count > 30


def test_the_same_bytes_give_the_same_receipt_wherever_they_are(run: Path, receipt: Path) -> None:
    moved = Path(shutil.copytree(run, run.parent / "elsewhere"))

    assert write(make_receipt(moved)) == receipt.read_text()


def test_it_holds_no_text_of_a_task_and_no_probability(receipt: Path) -> None:
    text = receipt.read_text()

    for task in load_dataset(compose("dataset=demo").dataset).tasks:
        assert task.id not in text
        assert task.question.instructions not in text
    assert "prob" not in text
    assert len(text) < 4000


def test_headline_numbers_are_those_of_the_summary(noisy: Path, receipt: Path) -> None:
    summary = json.loads((noisy / "summary.json").read_bytes())
    numbers = json.loads(receipt.read_text())["numbers"]

    assert numbers["ece"] == summary["ece"]["ece"]
    for name in ("accuracy", "brier_mean", "macro_accuracy", "n_correct"):
        assert numbers[name] == summary[name]


def test_a_change_that_was_sealed_again_is_caught(run: Path, receipt: Path) -> None:
    """The latency is nobody else's word: only whoever has the receipt can tell."""
    edit_line(run, RESULTS, 0, lambda record: record.update(ts=1.0))
    reseal(run)
    assert verify_run(run).state is State.VERIFIED

    report = held(run, receipt)

    assert report.state is State.FAILED
    assert {failure.file for failure in report.check("receipt").failures} == {CHECKSUMS, RESULTS}


def test_a_raw_file_under_another_name_is_caught(run: Path, receipt: Path) -> None:
    one = next(iter(sorted((run / "raw").iterdir())))
    one.rename(one.with_name("0.json"))

    messages = [failure.message for failure in held(run, receipt).check("receipt").failures]
    assert "raw.sha256: is not as in the receipt" in messages


def test_every_changed_byte_of_what_it_names_is_seen_by_it_alone(run: Path, receipt: Path) -> None:
    draw = random.Random(5)
    names = (CHECKSUMS, RESULTS, "manifest.json", "summary.json", "ledger.jsonl")
    for path in [*(run / name for name in names), *sorted((run / "raw").iterdir())]:
        before = change_one_byte(path, draw)
        assert held(run, receipt).check("receipt").failed, path
        path.write_bytes(before)


def test_a_changed_receipt_is_seen(run: Path, receipt: Path) -> None:
    found = json.loads(receipt.read_text())
    found["numbers"]["accuracy"] = 1.0
    receipt.write_text(json.dumps(found))

    (failure,) = held(run, receipt).check("receipt").failures
    assert failure.message == "numbers.accuracy: is not as in the receipt"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not a receipt"),
        ("[]", "not a receipt; `jevexp receipt RUN` prints one"),
        ('{"receipt": 99}', "of version 99, this jevexp reads 1"),
    ],
)
def test_what_is_no_receipt_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(content)

    with pytest.raises(InputError, match=reason):
        read_receipt(path)
    with pytest.raises(InputError, match="No such file"):
        read_receipt(tmp_path / "nothing")
