"""Forgeries of several fields at once, which fit all the others that a forger thinks of."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jevexp.datasets import load_dataset
from jevexp.harness.summary import summarize
from jevexp.settings import Dataset
from jevexp.store import RunDirectory
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, MANIFEST, RESULTS
from jevexp.store.manifest import Resumed
from jevexp.verification import Check, Result, State, verify_run
from jevexp.verification.context import VerificationContext, read_tree
from jevexp.verification.run import check_resumed
from tests.support.forgery import (
    edit,
    edit_line,
    edit_raw,
    lines,
    raw_file,
    reseal,
    write_lines,
)
from tests.support.in_process import run_here
from tests.support.runs import noul_tasks
from tests.verification.test_forgeries import failed
from tests.verification.test_run import complaints

NOISY = ("dataset=demo", "backend=fake", "backend.mode=noise", "caps.limit=12")
OWN = (
    "dataset=demo", "backend=python", "backend.factory=tests.verification.test_costs:make",
    "model=unclaimed", "model.alias=mine", "caps.limit=6",
)  # fmt: skip


def summed_up(run: Path) -> None:
    """Make the summary fit the records and the manifest, as the program would."""
    directory = RunDirectory(run)
    manifest = json.loads((run / MANIFEST).read_bytes())
    dataset = load_dataset(Dataset.of(manifest["config"]["resolved"]["dataset"]))
    tasks = dataset.tasks[: manifest["counts"]["requested"]]
    summary = summarize(
        tasks, directory.records(), ledger_charged_usd=manifest["ledger"]["charged_usd"]
    )
    directory.write_summary(summary)


def leave_out_bad_answers(run: Path, kept: int) -> None:
    """Keep the first records only, and make everything that counts them fit."""
    records = lines(run, RESULTS)
    for record in records[kept:]:
        raw_file(run, record["task_id"]).unlink()
    write_lines(run, RESULTS, records[:kept])
    rows = lines(run, LEDGER)[: 1 + 2 * kept]
    write_lines(run, LEDGER, rows)
    charged = sum(row["charged_usd"] for row in rows if row["event"] == "settle")

    def change(manifest: dict[str, Any]) -> None:
        manifest["counts"].update(attempted=kept, answered=kept, valid=kept)
        manifest.update(status="incomplete", exit_status=1, stop_reason="cap_reached")
        manifest["ledger"].update(charged_usd=charged, charged_by_run_usd=charged)

    edit(run, MANIFEST, change)
    summed_up(run)


def test_bad_answers_that_were_left_out_for_a_cap_that_had_room(run: Path) -> None:
    leave_out_bad_answers(run, 9)

    assert failed(run) == {
        "stop": [f"{MANIFEST}: stop_reason: cap_reached; the cap had room for another"]
    }


@pytest.mark.parametrize("reason", ["failures_in_a_row", "rate_limited", "identity_changed", None])
def test_bad_answers_that_were_left_out_for_a_rule_that_never_applied(
    run: Path, reason: str | None
) -> None:
    leave_out_bad_answers(run, 9)
    edit(run, MANIFEST, lambda manifest: manifest.update(stop_reason=reason))

    assert failed(run).keys() == {"stop"}


def test_a_refused_run_with_records(run: Path) -> None:
    edit(
        run,
        MANIFEST,
        lambda manifest: manifest.update(
            status="refused", exit_status=2, error="InputError", message="identity: another model"
        ),
    )

    assert failed(run) == {
        "manifest": [f"{MANIFEST}: status: a refused run asked nothing, and this one has records"]
    }


def test_a_refused_run_whose_records_are_not_counted(run: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest.update(status="refused", exit_status=2, error="InputError", message="no")
        manifest["counts"].update(attempted=0, answered=0, valid=0)

    edit(run, MANIFEST, change)

    found = failed(run)
    assert any("counts.attempted" in line for line in found["manifest"])


def test_an_http_status_that_nobody_gave(run: Path) -> None:
    edit_raw(run, 3, lambda raw: raw.update(http_status=200))
    assert "http_status: is not the status_code" in failed(run)["raw files"][0]

    edit_line(run, RESULTS, 3, lambda record: record.update(status_code=200))
    assert failed(run).keys() == {"answers"}


def understate(run: Path, *, record: bool, by_all: bool) -> None:
    """Say everywhere that the first answer cost nothing."""
    edit_line(run, LEDGER, 2, lambda row: row.update(charged_usd=0.0))
    if record:
        edit_line(run, RESULTS, 0, lambda entry: entry.update(charged_usd=0.0))
    rows = lines(run, LEDGER)
    charged = sum(row["charged_usd"] for row in rows if row["event"] == "settle")
    fields = ("charged_by_run_usd", "charged_usd") if by_all else ("charged_by_run_usd",)
    edit(run, MANIFEST, lambda manifest: manifest["ledger"].update(dict.fromkeys(fields, charged)))
    summed_up(run)


@pytest.fixture(scope="module", params=["fake", "python"])
def shared_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that keeps its account in a ledger of several; not to be changed."""
    place = tmp_path_factory.mktemp("shared")
    words = NOISY if request.param == "fake" else OWN
    return run_here(place, *words, f"caps.ledger={place / 'ours.jsonl'}")


@pytest.fixture
def shared(shared_run: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(shared_run, tmp_path / "shared"))


@pytest.mark.parametrize("by_all", [False, True])
def test_a_charge_that_is_understated_in_a_shared_ledger(shared: Path, *, by_all: bool) -> None:
    assert complaints(verify_run(shared)) == []
    understate(shared, record=False, by_all=by_all)
    assert "ledger" in failed(shared)

    understate(shared, record=True, by_all=by_all)
    assert failed(shared).keys() == {"costs"}


def test_a_shared_ledger_that_was_charged_less_than_this_run(shared: Path) -> None:
    edit(shared, MANIFEST, lambda manifest: manifest["ledger"].update(charged_usd=0.01))
    summed_up(shared)

    assert failed(shared) == {
        "ledger": [f"{MANIFEST}: ledger.charged_usd: less than this run's own charge"]
    }


def test_a_reservation_below_the_setting(shared: Path) -> None:
    """Also of a person's own backend, which may only choose to reserve more."""
    edit_line(shared, LEDGER, 1, lambda row: row.update(reserved_usd=0.001))
    edit_line(shared, LEDGER, 2, lambda row: row.update(charged_usd=0.001))
    edit_line(
        shared, RESULTS, 0, lambda record: record.update(reserved_usd=0.001, charged_usd=0.001)
    )
    charged = sum(row["charged_usd"] for row in lines(shared, LEDGER) if row["event"] == "settle")

    def change(manifest: dict[str, Any]) -> None:
        manifest["ledger"].update(charged_by_run_usd=charged, charged_usd=charged)

    edit(shared, MANIFEST, change)
    summed_up(shared)

    assert failed(shared).keys() == {"costs"}


def test_reservations_that_a_kill_left_and_somebody_hid(killed: Path) -> None:
    """Two answers that were paid for and have no record: only one can have been under way."""
    records = lines(killed, RESULTS)
    for path in set((killed / "raw").iterdir()) - {
        raw_file(killed, record["task_id"]) for record in records
    }:
        path.unlink()
    shutil.rmtree(killed / "pending", ignore_errors=True)
    write_lines(killed, LEDGER, lines(killed, LEDGER)[: 1 + 2 * len(records)])
    assert complaints(verify_run(killed)) == []

    for record in records[-2:]:
        raw_file(killed, record["task_id"]).unlink()
    write_lines(killed, RESULTS, records[:-2])
    assert len([line for line in complaints(verify_run(killed)) if "no record" in line]) == 2

    # Without their rows, what is left of them is evidence that belongs to nobody.
    write_lines(killed, LEDGER, lines(killed, LEDGER)[: 1 + 2 * (len(records) - 2)])
    assert complaints(verify_run(killed)) == []
    raw_file(killed, records[-1]["task_id"]).write_text("{}")
    assert [line.rpartition(": ")[2] for line in complaints(verify_run(killed))] == [
        "belongs to no record"
    ]


def test_a_killed_run_with_records_and_no_fingerprint(killed: Path) -> None:
    edit(killed, MANIFEST, lambda manifest: manifest.update(fingerprint=None, identity=None))

    assert complaints(verify_run(killed)) == [
        f"identity: {MANIFEST}: identity: a run with records knows whom it asked"
    ]


def held(run: Path, number: int) -> Path:
    """Put one of a killed run's answers back to where it waited for its record, as the last one."""
    records = lines(run, RESULTS)
    record = records[number]
    path = raw_file(run, record["task_id"])
    shutil.rmtree(run / "pending", ignore_errors=True)
    waiting = run / "pending" / path.name
    waiting.parent.mkdir()
    waiting.write_text(json.dumps({"record": record, "raw": path.read_text()}))
    recorded = {raw_file(run, earlier["task_id"]) for earlier in records[:number]}
    for unrecorded in set((run / "raw").iterdir()) - recorded:
        unrecorded.unlink()
    write_lines(run, RESULTS, records[:number])
    write_lines(run, LEDGER, lines(run, LEDGER)[: 2 + 2 * number])
    return waiting


def forge_held(waiting: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Change record and raw answer of an answer without a record, and make its hash fit."""
    whole = json.loads(waiting.read_bytes())
    raw = json.loads(whole["raw"])
    change(whole["record"], raw)
    whole["raw"] = json.dumps(raw, ensure_ascii=False)
    whole["record"]["raw_sha256"] = hashlib.sha256(whole["raw"].encode()).hexdigest()
    waiting.write_text(json.dumps(whole))


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda record, raw: record.update(correct=not record["correct"]), "scores"),
        (lambda record, raw: record.update(model="better"), "answers"),
        (lambda record, raw: record.update(charged_usd=0.0), "costs"),
        (lambda record, raw: record.update(reserved_usd=0.001, charged_usd=0.001), "costs"),
        (lambda record, raw: raw.update(http_status=200), "raw files"),
        (lambda record, raw: raw["request"].update(state="another"), "requests"),
        (lambda record, raw: raw["request"].update(expected="yes"), "requests"),
    ],
    ids=["correct", "model", "charge", "reservation", "http_status", "state", "gold"],
)
def test_an_answer_without_a_record_is_held_against_its_evidence(
    killed: Path, change: Callable[[dict[str, Any], dict[str, Any]], None], check: str
) -> None:
    waiting = held(killed, 2)
    assert complaints(verify_run(killed)) == []
    assert verify_run(killed).check("answers").count == 3

    forge_held(waiting, change)

    assert check in {line.partition(":")[0] for line in complaints(verify_run(killed))}


def test_an_answer_without_a_record_has_a_reservation_and_a_task(killed: Path) -> None:
    waiting = held(killed, 2)
    write_lines(killed, LEDGER, lines(killed, LEDGER)[:-1])
    (line,) = complaints(verify_run(killed))
    assert line.endswith("has an answer and no reservation")

    forge_held(waiting, lambda record, raw: record.update(task_id="one-more"))
    assert "is not among the planned ones" in "".join(complaints(verify_run(killed)))


def test_another_valid_task_file_at_the_runs_path(tmp_path: Path) -> None:
    path, copy = tmp_path / "tasks.jsonl", tmp_path / "copy.jsonl"
    tasks = noul_tasks(4)
    path.write_text("".join(f"{task.model_dump_json()}\n" for task in tasks))
    shutil.copy(path, copy)
    run = run_here(tmp_path, "dataset=local", f"dataset.path={path}", "backend=fake")
    others = [task.model_copy(update={"expected": "no"}) for task in tasks]
    path.write_text("".join(f"{task.model_dump_json()}\n" for task in others))

    report = verify_run(run)

    assert report.check("tasks").result is Result.NOT_CHECKED
    assert report.check("scores").result is Result.NOT_CHECKED
    reason = report.check("tasks").reason
    assert reason is not None
    assert f"{path} is not the file that the run read" in reason
    again = verify_run(run, tasks=copy)
    assert (again.state, complaints(again)) == (State.VERIFIED, [])
    assert again.check("scores").result is Result.PASS


def test_another_task_file_with_a_manifest_that_fits_it(tmp_path: Path) -> None:
    """The tasks fit the manifest then, and neither the scores nor the numbers do."""
    path = tmp_path / "tasks.jsonl"
    tasks = noul_tasks(4)
    path.write_text("".join(f"{task.model_dump_json()}\n" for task in tasks))
    run = run_here(tmp_path, "dataset=local", f"dataset.path={path}", "backend=fake")
    others = [task.model_copy(update={"expected": "no"}) for task in tasks]
    path.write_text("".join(f"{task.model_dump_json()}\n" for task in others))
    data = path.read_bytes()

    def change(manifest: dict[str, Any]) -> None:
        dataset = load_dataset(Dataset.of(manifest["config"]["resolved"]["dataset"]))
        manifest["dataset"]["dataset_hash"] = dataset.dataset_hash
        manifest["dataset"]["files"][0].update(
            sha256=hashlib.sha256(data).hexdigest(), bytes=len(data)
        )

    edit(run, MANIFEST, change)

    assert {"scores", "numbers"} <= failed(run).keys()


def test_the_seal_of_the_earlier_run(noisy: Path, tmp_path: Path) -> None:
    """A resumed run names the checksums of the run that it goes on with."""
    run, earlier = tmp_path / "run", tmp_path / "earlier"
    for copy in (run, earlier):
        shutil.copytree(noisy, copy)
    records = lines(run, RESULTS)

    def sealed(digest: str) -> Check:
        resumed = Resumed(
            run="earlier",
            path=str(earlier),
            manifest_sha256=hashlib.sha256((earlier / MANIFEST).read_bytes()).hexdigest(),
            checksums_sha256=digest,
            adopted=[record["task_id"] for record in records],
            recovered=[],
            charged_usd=0.0,
            sessions=[],
        )
        manifest = RunDirectory(run).read_manifest()
        return check_resumed(VerificationContext(run, read_tree(run), manifest, None), resumed)

    right = hashlib.sha256((earlier / CHECKSUMS).read_bytes()).hexdigest()
    assert sealed(right).failed == 0
    assert sealed(right).count == 1 + 12
    assert sealed("0" * 64).failed == 1

    edit_line(earlier, RESULTS, 0, lambda record: record.update(latency_s=9.0))
    reseal(earlier)
    changed = sealed(right)
    assert [failure.file for failure in changed.failures] == [MANIFEST, RESULTS]
