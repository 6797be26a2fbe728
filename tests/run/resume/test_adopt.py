"""What a resumed run takes over and what it asks: together one run, in the dataset's order."""

import hashlib
import json
import shutil
from typing import Any

import pytest

from jevexp.run import journal
from jevexp.store import RunDirectory, RunStatus
from jevexp.store.records import lines
from jevexp.verification import State, verify_run
from tests.run.resume.sessions import (
    TASKS,
    Crash,
    Desk,
    Killed,
    Session,
    failed,
    invalid,
    order,
    right,
    said,
    settings,
)
from tests.support.forgery import edit, reseal


def check_whole(session: Session) -> None:
    """The union is one complete run."""
    assert session.manifest.status is RunStatus.COMPLETE
    counts = dict.fromkeys(("requested", "attempted", "answered", "valid"), TASKS)
    assert session.manifest.counts.model_dump() == counts | {"truncated": 0}
    assert session.ids == order()
    assert len(session.raw) == TASKS
    for record in session.records:
        name = hashlib.sha256(record.task_id.encode()).hexdigest()
        assert hashlib.sha256(session.raw[f"{name}.json"]).hexdigest() == record.raw_sha256
    assert {path.name for path in session.path.iterdir()} == {
        "checksums.sha256",
        "ledger.jsonl",
        "manifest.json",
        "raw",
        "results.jsonl",
        "run.log",
        "summary.json",
    }


def test_only_what_was_never_answered_is_asked(desk: Desk) -> None:
    first = desk.run(right, right, right, Crash())
    second = desk.resume(first)
    check_whole(second)
    assert len(second.provider.received) == TASKS - 3
    assert second.lines[:3] == first.lines
    assert first.raw.items() <= second.raw.items()


def in_version(desk: Desk, version: str) -> None:
    """What sits down next at the desk is another jevexp."""
    now = journal.describe_software()
    changed = now.model_copy(update={"jevexp": version, "git_commit": version * 8})
    desk.patch.setattr(journal, "describe_software", lambda: changed)


def test_every_version_that_gave_answers_is_named_and_verified(desk: Desk) -> None:
    in_version(desk, "0.0.1")
    first = desk.run(right, Killed())
    assert first.manifest.software.earlier is None
    in_version(desk, "0.0.2")
    second = desk.resume(first, right, Crash())
    in_version(desk, "0.0.3")
    third = desk.resume(second)

    assert third.manifest.software.earlier is not None
    assert [
        (program.run, program.jevexp, program.git_commit)
        for program in third.manifest.software.earlier
    ] == [(first.path.name, "0.0.1", "0.0.1" * 8), (second.path.name, "0.0.2", "0.0.2" * 8)]
    assert third.manifest.software.jevexp == "0.0.3"
    assert verify_run(third.path).state is State.VERIFIED


@pytest.mark.parametrize(
    ("number", "field", "value", "message"),
    [
        (0, "jevexp", "0.0.9", "software.earlier: "),
        (1, "git_commit", None, "software.earlier: "),
        (1, "run", "another", "software.earlier, the last one's run: 'another', expected 'run-1'"),
    ],
)
def test_a_version_that_was_another_is_seen(
    desk: Desk, number: int, field: str, value: str | None, message: str
) -> None:
    first = desk.run(right, Crash())
    third = desk.resume(desk.resume(first, right, Crash()))
    edit(
        third.path,
        "manifest.json",
        lambda manifest: manifest["software"]["earlier"][number].update({field: value}),
    )
    reseal(third.path)

    report = verify_run(third.path)

    assert report.state is State.FAILED
    failures = [failure.message for check in report.checks for failure in check.failures]
    assert any(failure.startswith(message) for failure in failures), failures


def test_a_run_that_an_older_version_resumed_names_no_earlier_one_and_still_verifies(
    desk: Desk,
) -> None:
    second = desk.resume(desk.run(right, Crash()))
    edit(second.path, "manifest.json", lambda manifest: manifest["software"].pop("earlier"))
    reseal(second.path)

    assert verify_run(second.path).state is State.VERIFIED


def test_the_manifest_says_what_came_from_where(desk: Desk) -> None:
    first = desk.run(right, right, Crash())
    before = (first.path / "manifest.json").read_bytes()
    resumed = desk.resume(first).manifest.resumed
    assert resumed is not None
    assert (resumed.run, resumed.path) == (first.path.name, str(first.path))
    assert resumed.manifest_sha256 == hashlib.sha256(before).hexdigest()
    sealed = (first.path / "checksums.sha256").read_bytes()
    assert resumed.checksums_sha256 == hashlib.sha256(sealed).hexdigest()
    assert resumed.adopted == order()[:2]
    assert resumed.recovered == []
    assert [(one.run, one.started, one.tasks) for one in resumed.sessions] == [
        (first.path.name, first.manifest.started, order()[:2])
    ]


def test_the_earlier_run_is_left_as_it_is(desk: Desk) -> None:
    first = desk.run(right, failed, Crash())
    before = {path: path.read_bytes() for path in first.path.rglob("*") if path.is_file()}
    second = desk.resume(first)
    assert {path: path.read_bytes() for path in first.path.rglob("*") if path.is_file()} == before
    name = next(iter(first.raw))
    assert not (second.path / "raw" / name).samefile(first.path / "raw" / name)


def test_failed_attempts_are_asked_again_at_their_place(desk: Desk) -> None:
    first = desk.run(failed, right, failed, right, right, Crash())
    second = desk.resume(first)
    check_whole(second)
    asked = [request.state for request in second.provider.received]
    assert len(asked) == 3
    assert second.manifest.resumed is not None
    assert second.manifest.resumed.adopted == [order()[1], order()[3], order()[4]]
    assert [second.lines[place] for place in (1, 3, 4)] == [first.lines[p] for p in (1, 3, 4)]


def test_an_answer_that_was_invalid_was_an_answer(desk: Desk) -> None:
    first = desk.run(invalid, right, Crash())
    second = desk.resume(first)
    assert len(second.provider.received) == TASKS - 2
    assert second.lines[0] == first.lines[0]
    assert second.manifest.status is RunStatus.INCOMPLETE


def test_a_resumed_run_is_resumed_again(desk: Desk) -> None:
    first = desk.run(right, right, Crash())
    second = desk.resume(first, right, Crash())
    assert second.ids == order()[:3]
    third = desk.resume(second)
    check_whole(third)
    assert len(third.provider.received) == TASKS - 3
    resumed = third.manifest.resumed
    assert resumed is not None
    assert resumed.adopted == order()[:3]
    assert [(one.run, one.tasks) for one in resumed.sessions] == [
        (first.path.name, order()[:2]),
        (second.path.name, order()[2:3]),
    ]


def test_adopted_records_behind_a_kill_are_not_lost(desk: Desk) -> None:
    first = desk.run(failed, right, right, Crash())
    second = desk.resume(first, Killed())
    assert second.ids == []
    third = desk.resume(second)
    check_whole(third)
    assert len(third.provider.received) == TASKS - 2
    assert third.lines[1:3] == first.lines[1:3]


@pytest.mark.parametrize(
    ("step", "settled"), [("write_raw", False), ("settle", False), ("append_all", True)]
)
def test_an_answer_without_a_record_is_taken_over(desk: Desk, step: str, settled: bool) -> None:
    def killed(*arguments: Any, **named: Any) -> None:
        raise Killed

    using = settings("pricing.input_per_m=0", "pricing.output_per_m=0")
    with desk.patch.context() as patch:
        from jevexp.ledger.file import FileLedger

        patch.setattr(FileLedger if step == "settle" else RunDirectory, step, killed)
        first = desk.run(right, using=using)
    assert first.ids == []
    second = desk.resume(first, using=using)
    check_whole(second)
    assert len(second.provider.received) == TASKS - 1
    resumed = second.manifest.resumed
    assert resumed is not None
    assert resumed.recovered == resumed.adopted == order()[:1]
    recovered = second.records[0]
    assert recovered.cost_usd == 0.0
    # An open reservation is charged in full; so does its record say.
    assert recovered.charged_usd == resumed.charged_usd == (0.0 if settled else 0.02)


def test_a_charge_above_its_reservation_is_asked_again(desk: Desk) -> None:
    using = settings("pricing.input_per_m=1", "pricing.output_per_m=1")
    dear = {"input_tokens": 1_000_000, "output_tokens": 0}
    cheap = {"input_tokens": 1, "output_tokens": 0}
    first = desk.run(
        lambda request: said(request, dict(right(request).probs or {}), usage=dear), using=using
    )
    assert first.manifest.stop_reason == "overcharged"
    second = desk.resume(
        first,
        lambda request: said(request, dict(right(request).probs or {}), usage=cheap),
        using=using,
    )
    check_whole(second)
    assert len(second.provider.received) == TASKS
    assert second.manifest.resumed is not None
    assert second.manifest.resumed.charged_usd == 1.0


def test_the_cap_holds_for_all_sessions_together(desk: Desk) -> None:
    first = desk.run(right, right, Crash())
    second = desk.resume(first, using=settings("caps.cap_usd=0.1"))
    assert second.manifest.ledger.cap_usd == pytest.approx(0.04)
    assert second.manifest.stop_reason == "cap_reached"
    assert second.manifest.counts.attempted == 4
    third = desk.resume(second, using=settings("caps.cap_usd=0.14"))
    check_whole(third)
    assert third.manifest.resumed is not None
    assert third.manifest.resumed.charged_usd == pytest.approx(0.1)


def test_its_own_ledger_covers_only_what_it_asked(desk: Desk) -> None:
    first = desk.run(right, right, Crash())
    second = desk.resume(first)
    rows = [json.loads(line) for line in (second.path / "ledger.jsonl").read_text().splitlines()]
    asked = {row["meta"]["task_id"] for row in rows if row["event"] == "reserve"}
    assert asked == set(order()[2:])
    assert second.manifest.ledger.charged_by_run_usd == pytest.approx(0.02 * (TASKS - 2))


def test_a_run_that_had_everything_but_its_seal_gets_one(desk: Desk) -> None:
    with desk.patch.context() as patch:
        patch.setattr(RunDirectory, "seal", lambda directory: None)
        first = desk.run(right)
    second = desk.resume(first)
    check_whole(second)
    assert second.provider.received == []
    assert second.lines == first.lines


def test_a_run_that_ended_before_it_took_anything_over_gives_way_to_the_earlier_one(
    desk: Desk,
) -> None:
    first = desk.run(right, right, Killed())
    with desk.patch.context() as patch:
        patch.setattr(RunDirectory, "adopt", crash)
        second = desk.resume(first)
    assert second.manifest.status is RunStatus.CRASHED
    assert verify_run(second.path).state is State.VERIFIED
    third = desk.resume(second)
    check_whole(third)
    assert len(third.provider.received) == TASKS - 2
    assert third.manifest.resumed is not None
    assert third.manifest.resumed.run == first.path.name


def crash(*arguments: Any) -> None:
    raise Crash


def test_records_that_only_the_pinned_harness_had_written_are_taken_over(desk: Desk) -> None:
    append_all = RunDirectory.append_all

    def killed_at_the_second(directory: RunDirectory, records: Any) -> None:
        if list(directory.records()):
            raise Killed
        append_all(directory, records)

    with desk.patch.context() as patch:
        patch.setattr(RunDirectory, "append_all", killed_at_the_second)
        patch.setattr(RunDirectory, "place_adopted", lambda directory: None)
        first = desk.run(right)
    (held,) = RunDirectory(first.path).held()
    # Where that harness runs, nothing is held: it makes the records itself.
    shutil.rmtree(first.path / "pending")
    (first.path / "upstream").mkdir()
    written = lines([*first.records, held.record]) + b'{"task_id": "cut of'
    (first.path / "upstream/results.jsonl").write_bytes(written)
    second = desk.resume(first)
    check_whole(second)
    assert second.manifest.resumed is not None
    assert second.manifest.resumed.recovered == [held.record.task_id] == order()[1:2]
