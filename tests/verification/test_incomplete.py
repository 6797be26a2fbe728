"""A run that was killed, stopped or is still at work: what is there is checked, and no more."""

import shutil
import signal
from pathlib import Path

import pytest

from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, MANIFEST, RESULTS, SUMMARY
from jevexp.verification import Result, State, verify_run
from tests.support.cli import jevexp, only_run
from tests.support.forgery import edit, lines, raw_file, reseal, write_lines
from tests.verification.conftest import stopped
from tests.verification.test_run import complaints

KILLED = "its process was killed before it could say how the run ended"


def test_a_killed_run_is_incomplete_with_the_reason(killed: Path) -> None:
    report = verify_run(killed)

    assert complaints(report) == []
    assert report.state is State.INCOMPLETE
    assert report.incomplete == KILLED
    assert report.check("files").result is Result.NOT_CHECKED
    assert report.check("summary").result is Result.NOT_CHECKED
    assert report.check("scores").count >= 3
    assert RESULTS in report.not_covered


def test_what_is_there_of_a_killed_run_is_checked(killed: Path) -> None:
    records = lines(killed, RESULTS)
    records[1]["correct"] = not records[1]["correct"]
    write_lines(killed, RESULTS, records)

    report = verify_run(killed)

    assert report.state is State.FAILED
    assert report.check("scores").failures[0].place == f"{RESULTS}:2"


@pytest.mark.parametrize(("name", "check"), [(RESULTS, "attempts"), (LEDGER, "ledger")])
def test_a_torn_last_line_is_recognised(killed: Path, name: str, check: str) -> None:
    with (killed / name).open("ab") as file:
        file.write(b'{"task_id": "demo-')

    report = verify_run(killed)

    assert complaints(report) == []
    (note,) = report.check(check).notes
    assert note.endswith("torn, and read by nobody")


@pytest.mark.parametrize(("name", "check"), [(RESULTS, "attempts"), (LEDGER, "ledger")])
def test_a_torn_last_line_in_a_run_that_ended_is_a_failure(
    run: Path, name: str, check: str
) -> None:
    (run / name).write_bytes((run / name).read_bytes()[:-30])
    reseal(run)

    assert "ends in the middle" in verify_run(run).check(check).failures[0].message


def test_a_reservation_in_flight_stays_charged(killed: Path) -> None:
    """Killed while it waited for an answer: the last task has a reservation and nothing else."""
    rows = lines(killed, LEDGER)
    records = lines(killed, RESULTS)
    done = len(records)
    claimed = {raw_file(killed, record["task_id"]) for record in records}
    for path in set((killed / "raw").iterdir()) - claimed:
        path.unlink()
    write_lines(killed, LEDGER, rows[: 1 + 2 * done])
    assert complaints(verify_run(killed)) == []

    last = rows[1] | {"reservation_id": "f" * 32, "meta": dict(rows[1]["meta"])}
    last["meta"]["task_id"] = "demo-policy-4-b"
    write_lines(killed, LEDGER, [*rows[: 1 + 2 * done], last])
    assert complaints(verify_run(killed)) == []

    other = last | {"reservation_id": "e" * 32, "meta": last["meta"] | {"task_id": "demo-x"}}
    write_lines(killed, LEDGER, [*rows[: 1 + 2 * done], last, other])
    assert "has a reservation and no record" in complaints(verify_run(killed))[0]


def test_a_killed_run_whose_manifest_was_never_written(killed: Path) -> None:
    (killed / MANIFEST).unlink()

    report = verify_run(killed)

    assert report.state is State.INCOMPLETE
    assert report.incomplete is not None
    assert report.incomplete.startswith("there is no manifest.json")
    assert report.check("manifest").result is Result.NOT_CHECKED


def test_a_run_that_ended_and_lost_its_checksums_is_not_verified(run: Path) -> None:
    (run / CHECKSUMS).unlink()

    report = verify_run(run)

    assert complaints(report) == []
    assert report.state is State.INCOMPLETE
    assert report.incomplete is not None
    assert report.incomplete.startswith("there is no checksums.sha256")


def test_a_summary_that_is_missing_from_a_run_that_ended(run: Path) -> None:
    (run / SUMMARY).unlink()
    reseal(run)

    assert "manifest: summary.json: is missing from a run that ended" in complaints(verify_run(run))


def test_an_interrupted_run_is_sealed_and_verifies(tmp_path: Path) -> None:
    report = verify_run(stopped(tmp_path, signal.SIGTERM))

    assert complaints(report) == []
    assert report.state is State.VERIFIED
    assert report.status == "interrupted"


def test_a_resumed_run_verifies_with_the_earlier_one_and_without(
    killed_run: Path, tmp_path: Path
) -> None:
    earlier = Path(shutil.copytree(killed_run, tmp_path / "earlier"))
    done = jevexp("resume=earlier", "tracking=none", cwd=tmp_path)
    assert done.status == 0, done.out + done.err
    resumed = only_run(tmp_path / "outputs")

    report = verify_run(resumed)
    assert complaints(report) == []
    assert report.state is State.VERIFIED
    assert report.check("resumed").count >= 3
    assert report.check("ledger").count < 2 * 48

    edit(resumed, MANIFEST, lambda manifest: manifest["resumed"].update(path="elsewhere"))
    reseal(resumed)
    assert verify_run(resumed).check("resumed").result is Result.NOT_CHECKED

    edit(resumed, MANIFEST, lambda manifest: manifest["resumed"].update(path=str(earlier)))
    records = lines(resumed, RESULTS)
    records[0]["latency_s"] = 0.0
    write_lines(resumed, RESULTS, records)
    reseal(resumed)
    found = complaints(verify_run(resumed))
    assert any(line.startswith(f"resumed: {RESULTS}: task ") for line in found)
