"""Changes whose checksums fit again: what the bytes no longer tell, their meaning does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jevexp.store.directory import LEDGER, MANIFEST, RESULTS, SUMMARY
from jevexp.verification import Result, State, verify_run
from tests.support.forgery import (
    edit,
    edit_line,
    edit_raw,
    lines,
    raw_file,
    reseal,
    write_lines,
)

Forgery = Callable[[Path], None]


def failed(run: Path) -> dict[str, list[str]]:
    """The messages of every check that fails on a resealed run."""
    reseal(run)
    report = verify_run(run)
    assert report.check("files").result is Result.PASS
    assert (report.state is State.FAILED) is any(check.failed for check in report.checks)
    return {
        check.name: [f"{one.place}: {one.message}" for one in check.failures]
        for check in report.checks
        if check.failed
    }


def swapped(probs: dict[str, Any]) -> dict[str, Any]:
    """The same labels with the first two probabilities exchanged."""
    (one, p), (other, q), *rest = probs.items()
    return {one: q, other: p, **dict(rest)}


def test_another_probability_in_the_record(run: Path) -> None:
    def change(record: dict[str, Any]) -> None:
        for field in ("probs", "probs_as_returned"):
            record[field] = swapped(record[field])

    edit_line(run, RESULTS, 3, change)

    assert {"answers", "scores"} <= failed(run).keys()


def test_another_probability_in_the_raw_answer_and_its_hash(run: Path) -> None:
    def change(raw: dict[str, Any]) -> None:
        raw["response"]["probabilities"] = swapped(raw["response"]["probabilities"])

    edit_raw(run, 3, change)

    found = failed(run)
    assert {"answers", "scores"} <= found.keys()
    assert found["answers"][0].startswith("raw/")
    assert "probs_as_returned: results.jsonl:4 says" in found["answers"][0]


def test_a_verdict_that_does_not_follow(run: Path) -> None:
    edit_line(run, RESULTS, 0, lambda record: record.update(correct=not record["correct"]))

    found = failed(run)
    assert found["scores"] == [f"{RESULTS}:1: correct: False, scored again True"] or found[
        "scores"
    ] == [f"{RESULTS}:1: correct: True, scored again False"]
    assert "summary" in found


def test_another_model_in_the_record(run: Path) -> None:
    edit_line(run, RESULTS, 0, lambda record: record.update(model="better"))

    assert {"manifest", "stop"} <= failed(run).keys()


@pytest.mark.parametrize("row", [1, 2, 7, 24])
def test_a_ledger_row_that_was_dropped(run: Path, row: int) -> None:
    rows = lines(run, LEDGER)
    write_lines(run, LEDGER, rows[:row] + rows[row + 1 :])

    assert failed(run).keys() == {"ledger"}


def test_a_ledger_that_was_dropped(run: Path) -> None:
    (run / LEDGER).unlink()

    assert failed(run) == {"ledger": [f"{LEDGER}: is missing"]}


def test_a_charge_that_is_smaller_everywhere(run: Path) -> None:
    edit_line(run, LEDGER, 2, lambda row: row.update(charged_usd=0.0))
    edit_line(run, RESULTS, 0, lambda record: record.update(charged_usd=0.0))
    edit(run, MANIFEST, lambda manifest: manifest["ledger"].update(charged_usd=0.22))
    edit(run, MANIFEST, lambda manifest: manifest["ledger"].update(charged_by_run_usd=0.22))
    edit(run, SUMMARY, lambda summary: summary.update(ledger_charged_usd=0.22))

    assert failed(run).keys() == {"costs"}


@pytest.mark.parametrize(
    ("field", "value"), [("accuracy", 1.0), ("brier_mean", 0.0), ("n_correct", 12)]
)
def test_another_number_in_the_summary(run: Path, field: str, value: float) -> None:
    edit(run, SUMMARY, lambda summary: summary.update({field: value}))

    found = failed(run)
    assert found["summary"][0].startswith(f"{SUMMARY}: {field}: stored ")
    assert ("numbers" in found) is (field != "n_correct")


def test_a_number_of_one_family_in_the_summary(run: Path) -> None:
    def change(summary: dict[str, Any]) -> None:
        summary["per_family"]["adequacy"]["latency"]["p50_s"] += 1e-9

    edit(run, SUMMARY, change)

    (line,) = failed(run)["summary"]
    assert line.startswith(f"{SUMMARY}: per_family.adequacy.latency.p50_s: ")


@pytest.mark.parametrize("content", ["[1]", '"x"', "0", "null"])
def test_a_summary_that_is_no_object(run: Path, content: str) -> None:
    (run / SUMMARY).write_text(content)

    assert failed(run) == {"summary": [f"{SUMMARY}: is no object"]}
    numbers = verify_run(run).check("numbers")
    assert (numbers.result, numbers.reason) == (Result.NOT_CHECKED, "the summary cannot be read")


def test_probabilities_in_another_order(run: Path) -> None:
    """The order of the labels is that of the question."""

    def change(record: dict[str, Any]) -> None:
        for field in ("probs", "probs_as_returned"):
            record[field] = dict(reversed(record[field].items()))

    edit_line(run, RESULTS, 3, change)

    assert {"answers", "scores"} <= failed(run).keys()


def test_records_in_another_order(run: Path) -> None:
    records = lines(run, RESULTS)
    write_lines(run, RESULTS, [records[1], records[0], *records[2:]])

    found = failed(run)
    assert found["attempts"] == [
        f"{RESULTS}:2: task 'demo-adequacy-1-a' after 'demo-adequacy-1-b'",
        f"{RESULTS}:1: task 'demo-adequacy-1-a' was passed over, and nothing says why",
    ]
    assert "ledger" in found


def test_a_record_that_was_dropped(run: Path) -> None:
    write_lines(run, RESULTS, lines(run, RESULTS)[:-1])

    assert {"raw files", "ledger", "manifest", "summary"} <= failed(run).keys()


def test_a_bad_answer_that_was_left_out_of_everything(run: Path) -> None:
    """Records, raw file, ledger rows and counts fit: what is missing is a reason."""
    records = lines(run, RESULTS)
    write_lines(run, RESULTS, records[:-1])
    raw_file(run, records[-1]["task_id"]).unlink()
    write_lines(run, LEDGER, lines(run, LEDGER)[:-2])

    def change(manifest: dict[str, Any]) -> None:
        manifest["counts"].update(attempted=11, answered=11, valid=11)
        manifest.update(status="incomplete", exit_status=1)
        manifest["ledger"].update(charged_usd=0.22, charged_by_run_usd=0.22)

    edit(run, MANIFEST, change)

    assert "stop" in failed(run)


def test_a_run_that_pretends_that_fewer_tasks_were_asked_for(run: Path) -> None:
    edit(run, MANIFEST, lambda manifest: manifest["counts"].update(requested=11))

    assert {"manifest", "attempts"} <= failed(run).keys()


def test_a_task_that_was_added(run: Path) -> None:
    records = lines(run, RESULTS)
    added = records[0] | {"task_id": "one-more"}
    raw_file(run, "one-more").write_bytes(raw_file(run, records[0]["task_id"]).read_bytes())
    write_lines(run, RESULTS, [*records, added])

    found = failed(run)
    assert found["attempts"][0] == f"{RESULTS}:13: task 'one-more' is not among the planned ones"


def test_a_record_twice(run: Path) -> None:
    records = lines(run, RESULTS)
    write_lines(run, RESULTS, [*records, records[0]])

    assert failed(run)["attempts"] == [
        f"{RESULTS}:13: task 'demo-adequacy-1-a' has a second record"
    ]


@pytest.mark.parametrize("hashes", [False, True], ids=["alone", "with their hashes"])
def test_raw_files_that_were_exchanged(run: Path, *, hashes: bool) -> None:
    records = lines(run, RESULTS)
    one, other = (raw_file(run, record["task_id"]) for record in records[:2])
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    if hashes:
        records[0]["raw_sha256"], records[1]["raw_sha256"] = (
            records[1]["raw_sha256"],
            records[0]["raw_sha256"],
        )
        write_lines(run, RESULTS, records)

    found = failed(run)
    assert ("raw files" in found) is not hashes
    assert len([line for line in found["requests"] if "is not the task's own" in line]) == 2


def test_a_raw_file_that_nobody_claims(run: Path) -> None:
    raw_file(run, "nobody").write_text('{"request": null, "response": null, "http_status": null}')

    (line,) = failed(run)["raw files"]
    assert line == f"{raw_file(run, 'nobody').relative_to(run)}: belongs to no record"


def test_a_raw_file_that_is_missing(run: Path) -> None:
    raw_file(run, lines(run, RESULTS)[4]["task_id"]).unlink()

    (line,) = failed(run)["raw files"]
    assert line.startswith(f"{RESULTS}:5: raw/")


def put(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change that puts a value into a nested object."""

    def change(whole: dict[str, Any]) -> None:
        for key in path[:-1]:
            whole = whole[key]
        whole[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "path",
    [
        ("request", "expected"),
        ("request", "sent"),
        ("request", "questions", "second"),
        ("request", "questions", "decision", "answer"),
        ("request", "questions", "decision", "instructions"),
        ("request", "state"),
        ("request", "model"),
    ],
    ids=".".join,
)
def test_a_request_that_held_more_or_something_else(run: Path, path: tuple[str, ...]) -> None:
    edit_raw(run, 2, put(*path, value="yes"))

    assert failed(run)["requests"][0].startswith("raw/")


def test_a_request_whose_options_were_in_another_order(run: Path) -> None:
    number = next(
        index
        for index, record in enumerate(lines(run, RESULTS))
        if record["family"] == "extraction"
    )

    def change(raw: dict[str, Any]) -> None:
        decision = raw["request"]["questions"]["decision"]
        decision["criteria"] = dict(reversed(decision["criteria"].items()))

    edit_raw(run, number, change)

    assert "request: is not the task's own state and question" in failed(run)["requests"][0]


PROGRAM = {"run": "before", "jevexp": "0.0.1", "git_commit": None, "git_dirty": None}


@pytest.mark.parametrize(
    ("path", "value", "check"),
    [
        (("config", "resolved", "backend", "accuracy"), 0.1, "manifest"),
        (("config", "sha256"), "0" * 64, "manifest"),
        (("counts", "valid"), 11, "manifest"),
        (("counts", "answered"), 11, "manifest"),
        (("status",), "incomplete", "manifest"),
        (("exit_status",), 1, "manifest"),
        (("error",), "ValueError", "manifest"),
        (("finished",), None, "manifest"),
        (("model", "requested"), "other", "manifest"),
        (("model", "resolved"), [], "manifest"),
        (("model", "declared", "alias"), "other", "manifest"),
        (("harness", "commit"), "0" * 40, "manifest"),
        (("cost_basis",), [], "manifest"),
        (("stop_reason",), "cap_reached", "stop"),
        (("dataset", "dataset_hash"), "0" * 64, "tasks"),
        (("dataset", "n_tasks"), 12, "tasks"),
        (("dataset", "files"), [], "tasks"),
        (("fingerprint", "value"), "jf1-0000000000000000", "identity"),
        (("fingerprint", "inputs", "backend"), "llama_cpp", "identity"),
        (("identity", "verdict"), "confirmed", "identity"),
        (("identity", "fields", "alias", "verdict"), "contradicted", "identity"),
        (("identity", "fields", "alias", "declared"), "other", "identity"),
        (("identity",), None, "identity"),
        (("ledger", "charged_by_run_usd"), 0.0, "ledger"),
        (("ledger", "charged_usd"), 1.0, "ledger"),
        (("ledger", "cap_usd"), 100.0, "manifest"),
        (("backend", "name"), "other", "manifest"),
        (("dataset", "pin", "licence"), "mine", "manifest"),
        (("ledger", "shared"), True, "manifest"),
        (("version",), 2, "manifest"),
        (("software", "earlier"), [PROGRAM], "manifest"),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else None,
)
def test_a_manifest_whose_parts_disagree(
    run: Path, path: tuple[str, ...], value: Any, check: str
) -> None:
    edit(run, MANIFEST, put(*path, value=value))

    found = failed(run)
    assert check in found
    assert found[check][0].startswith((f"{MANIFEST}: ", RESULTS, LEDGER))


def test_a_configuration_and_its_hash_that_fit_each_other(run: Path) -> None:
    """The backend's own description, and what it answered, still say otherwise."""
    import hashlib

    def change(manifest: dict[str, Any]) -> None:
        resolved = manifest["config"]["resolved"]
        resolved["caps"]["reserve_usd"] = 0.01
        canonical = json.dumps(resolved, sort_keys=True, ensure_ascii=False)
        manifest["config"]["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()

    edit(run, MANIFEST, change)

    assert failed(run).keys() == {"costs"}


@pytest.mark.parametrize(
    "change",
    [
        put("event", value="reset"),
        put("reservation_id", value="other"),
        put("reserved_usd", value=0.0),
        put("reserved_usd", value=-0.02),
        put("ts", value="now"),
        put("meta", "task_id", value="other"),
        put("meta", "adapter", value="other"),
        put("meta", "note", value="x"),
        put("note", value="x"),
    ],
)
def test_a_ledger_row_that_says_something_else(
    run: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    edit_line(run, LEDGER, 3, change)

    assert "ledger" in failed(run)


def test_another_cap_in_the_ledger(run: Path) -> None:
    edit_line(run, LEDGER, 0, lambda row: row.update(cap_usd=100.0))

    assert failed(run)["ledger"] == [f"{MANIFEST}: ledger.cap_usd: is not the cap in {LEDGER}:1"]


def test_an_error_beside_an_answer(run: Path) -> None:
    edit_line(run, RESULTS, 0, lambda record: record.update(error="timeout"))

    assert {"answers", "scores"} <= failed(run).keys()


def test_usage_that_nobody_reported(run: Path) -> None:
    edit_line(run, RESULTS, 0, lambda record: record["usage"].update(input_tokens=9))

    assert "answers" in failed(run)
