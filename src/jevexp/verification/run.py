"""Verifies one run directory, from its files to its numbers."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jevexp.backends.rereading import RawAnswer
from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS, document_sha256
from jevexp.store.directory import EARLY, LEDGER, MANIFEST, PENDING, RAW, RESULTS, SUMMARY
from jevexp.store.finding import earlier_run
from jevexp.store.manifest import Resumed
from jevexp.store.records import raw_name
from jevexp.untrusted.files import opened, read_document, whole_lines
from jevexp.verification.answers import AnswerChecks, Entry
from jevexp.verification.check import Check, Report
from jevexp.verification.context import (
    Tree,
    VerificationContext,
    check_files,
    check_tasks,
    read_tree,
)
from jevexp.verification.ledger import MOST_RECORDS, Rows
from jevexp.verification.manifest import (
    check_identity,
    check_manifest,
    check_stop,
    check_sums,
    read_manifest,
)

_ONLY_OF_RUNS = {CHECKSUMS, SUMMARY, LEDGER}
_AT_WORK = "a process is still writing it"


def verify_run(root: Path, *, tasks: Path | None = None) -> Report:
    """Prove a run directory again: offline, and without running anything of its contents.

    Args:
        root: the run's directory.
        tasks: a copy of the dataset's task file, or a folder of them, where the run's are not here.

    Raises InputError: it is no run directory.
    """
    try:
        tree = read_tree(root)
    except OSError as error:
        raise InputError(f"{root}: {error.strerror}; give a run directory") from error
    has_manifest = MANIFEST in tree.files or MANIFEST in tree.faults
    manifest_check, manifest = read_manifest(root, here=has_manifest)
    # What only runs leave; others have files of the same names. The results are made before the
    # first manifest, and filled after it.
    begun = tree.files.get(RESULTS) == 0
    left_by_a_run = begun or tree.below(RAW) or _ONLY_OF_RUNS & tree.files.keys()
    if manifest is None and not left_by_a_run:
        reason = "is not that of a run" if has_manifest else "is missing"
        raise InputError(
            f"{root}: is no run directory: {MANIFEST} {reason}; give a run directory, or a sweep's"
        )
    checks = [check_files(root, tree), manifest_check]
    incomplete = _incomplete(root, tree, manifest)
    if incomplete == _AT_WORK:
        # What is read now is older than what is read next.
        manifest_check.reason = _AT_WORK
    elif manifest is not None:
        checks += _check_content(root, tree, manifest, tasks, manifest_check)
    uncovered = tree.made_later | {CHECKSUMS} if CHECKSUMS in tree.files else tree.files
    return Report(
        path=root,
        run=manifest.run if manifest else None,
        status=manifest.status.value if manifest else None,
        incomplete=incomplete,
        checks=tuple(checks),
        not_covered=tuple(sorted(uncovered)),
    )


def _check_content(
    root: Path, tree: Tree, manifest: Manifest, copy: Path | None, manifest_check: Check
) -> list[Check]:
    """Check everything that is about more than bytes."""
    checks: list[Check] = []
    dataset, loaded = check_tasks(manifest, copy)
    planned = loaded.tasks[: manifest.counts.requested] if loaded else None
    context = VerificationContext(root, tree, manifest, planned)
    with manifest_check.guarded(MANIFEST):
        record_pass = RecordPass(context)
        checks += record_pass.run()
        check_manifest(context, record_pass.records, manifest_check)
        checks += [
            check_identity(context, record_pass.records),
            *check_sums(context, record_pass.records),
        ]
        if manifest.resumed:
            checks.append(check_resumed(context, manifest.resumed))
    return [dataset, *checks]


def _incomplete(root: Path, tree: Tree, manifest: Manifest | None) -> str | None:
    """Why the directory was never sealed; null where it was."""
    if CHECKSUMS in tree.files and (manifest is None or manifest.finished is not None):
        return None
    if manifest and manifest.status is RunStatus.RUNNING:
        if RESULTS in tree.files and RunDirectory(root).in_use:
            return _AT_WORK
        return "its process was killed before it could say how the run ended"
    if MANIFEST not in tree.files:
        return f"there is no {MANIFEST}: its process was killed before it wrote the first one"
    return f"there is no {CHECKSUMS}: it was killed while it ended, or somebody removed the file"


# What later checks need no more, and what makes a record large.
_LARGE: dict[str, Any] = {"probs_as_returned": None, "usage": {}}


class RecordPass:
    """Looks at every record once.

    Attributes:
        records: by task id, in their order, without what only their own checks needed.
    """

    def __init__(self, context: VerificationContext) -> None:
        self._context = context
        self.records: dict[str, Record] = {}
        self._lines: dict[str, int] = {}
        self._order = Check("attempts", "every task attempted at most once, in the dataset's order")
        self._evidence = Check("raw files", "every record's raw file, and no raw file without one")
        self._answers = AnswerChecks(context)
        self._claimed: set[str] = set()
        self._place = 0
        # Tasks without a record: before an adopted record, and before one that was made here.
        self._skipped: list[tuple[str, int]] = []
        self._gaps: list[tuple[str, int]] = []

    def run(self) -> list[Check]:
        """All checks that look at single records."""
        context = self._context
        with self._order.guarded(RESULTS):
            for line, data in context.lines(RESULTS, self._order, "record", most=MOST_RECORDS):
                with self._order.guarded(RESULTS, line=line):
                    self._look(line, Record.model_validate(loads(data)))
        early = self._look_at_early()
        held = self._look_at_held()
        asked = {
            task_id: (self._lines[task_id], record)
            for task_id, record in self.records.items()
            if task_id not in context.adopted
        }
        rows = Rows(context)
        rows.check_against(asked, early)
        for task_id in sorted(early | held):
            if rows.here and task_id not in rows.by_task and task_id not in context.adopted:
                rows.check.fail(LEDGER, f"task {task_id!r} has an answer and no reservation")
        # A task that was passed over has to be one that was sent and has no record for a reason.
        # Adopted records stand at their places also where this run never came to the ones before.
        for task_id, line in self._gaps:
            if task_id not in rows.cut_off:
                message = f"task {task_id!r} was passed over, and nothing says why"
                self._order.fail(RESULTS, message, line=line)
        unfinished = early | rows.cut_off
        if context.cut_off:
            # A resumed run that was cut off while it took answers over has their raw files first.
            unfinished |= context.adopted
        without_record = {_raw_path(task_id) for task_id in unfinished}
        raw_files = {f"{RAW}/{name}" for name in context.tree.below(RAW)}
        for name in sorted(raw_files - self._claimed):
            if name in without_record:
                self._evidence.notes.append(f"{name}: of a task that was cut off before its record")
            else:
                self._evidence.fail(name, "belongs to no record")
        if context.tasks is None:
            self._order.notes.append("not held against the dataset's order: tasks are not here")
        return [
            self._order,
            self._evidence,
            *self._answers.finish(),
            rows.check,
            check_stop(context, self.records, self._lines, rows),
        ]

    def _look(self, line: int, record: Record) -> None:
        context = self._context
        self._order.count += 1
        if record.task_id in self.records:
            self._order.fail(RESULTS, f"task {record.task_id!r} has a second record", line=line)
            return
        entry = self._entry(record, RESULTS, line)
        task = entry.task
        if task is not None:
            self._check_place(task, line)
        self._look_at_raw(entry)
        if task is None and context.tasks is not None:
            return
        probs = record.probs if task and set(record.probs or ()) == set(task.labels) else None
        runtime = {"truncated": True} if record.truncated else None
        self.records[record.task_id] = record.model_copy(
            update={**_LARGE, "probs": probs, "runtime": runtime}
        )
        self._lines[record.task_id] = line

    def _entry(self, record: Record, file: str, line: int | None) -> Entry:
        """The record with its task; a failure where the tasks are here and it is none of them."""
        task, tasks = None, self._context.tasks
        if tasks is not None:
            place = self._context.places.get(record.task_id)
            if place is not None:
                task = tasks[place]
            else:
                message = f"task {record.task_id!r} is not among the planned ones"
                self._order.fail(file, message, line=line)
        return Entry(record, task, file, line)

    def _check_place(self, task: Task, line: int) -> None:
        """The results are in the dataset's order; passed over tasks are kept for the end."""
        tasks, place = self._context.tasks or (), self._context.places[task.id]
        if place < self._place:
            message = f"task {task.id!r} after {tasks[self._place - 1].id!r}"
            self._order.fail(RESULTS, message, line=line)
            return
        self._skipped += [(skipped.id, line) for skipped in tasks[self._place : place]]
        self._place = place + 1
        if task.id not in self._context.adopted:
            self._gaps += self._skipped
            self._skipped = []

    def _look_at_raw(self, entry: Entry) -> None:
        """Hold a record against its raw file."""
        name = _raw_path(entry.record.task_id)
        self._evidence.count += 1
        self._claimed.add(name)
        if name not in self._context.tree.files:
            self._evidence.fail(entry.file, f"{name} is missing", line=entry.line)
        else:
            with self._evidence.guarded(name):
                data = read_document(self._context.root / name, follow_links=False)
                if hashlib.sha256(data).hexdigest() != entry.record.raw_sha256:
                    message = f"its SHA-256 is not the raw_sha256 of {entry.place}"
                    self._evidence.fail(name, message)
                self._look_at_answer(entry, data, name)
        self._answers.price(entry)

    def _look_at_answer(self, entry: Entry, data: bytes, name: str) -> None:
        """Hold a record against the raw evidence `data` in the file `name`."""
        content = loads(data)
        if set(content) != {"request", "response", "http_status"}:
            self._evidence.fail(name, "does not hold request, response and http_status alone")
            return
        if content["http_status"] != entry.record.status_code:
            self._evidence.fail(name, f"http_status: is not the status_code of {entry.place}")
        raw = RawAnswer(content["request"], content["response"], entry.record)
        self._answers.look(entry, raw, name)

    def _look_at_early(self) -> set[str]:
        """Check the records that waited for their turn when the process was killed: their tasks."""
        early: set[str] = set()
        if EARLY in self._context.tree.files:
            with self._evidence.guarded(EARLY):
                records = RunDirectory(self._context.root).early_records()
                for line, record in enumerate(records, 1):
                    early.add(record.task_id)
                    self._look_at_raw(self._entry(record, EARLY, line))
                self._evidence.notes.append(f"{len(early)} records in {EARLY} wait for their turn")
        return early

    def _look_at_held(self) -> set[str]:
        """Check the answers that had no record when the process was killed: their tasks."""
        held: set[str] = set()
        if files := self._context.tree.below(PENDING):
            self._evidence.notes.append(f"{len(files)} answers in {PENDING}/ have no record yet")
            with self._evidence.guarded(PENDING):
                for record, raw in RunDirectory(self._context.root).held():
                    if record.task_id not in self.records:
                        held.add(record.task_id)
                        name = f"{PENDING}/{raw_name(record.task_id)}"
                        entry = self._entry(record, name, None)
                        with self._evidence.guarded(name):
                            self._look_at_answer(entry, raw.encode(), name)
                        self._answers.price(entry)
        return held


def _raw_path(task_id: str) -> str:
    return f"{RAW}/{raw_name(task_id)}"


def check_resumed(context: VerificationContext, resumed: Resumed) -> Check:
    """Hold every adopted record against the earlier run's, byte for byte, where that is here.

    Records that had not been written when the earlier process was killed are in no results to
    hold them against.
    """
    check = Check("resumed", "every adopted record is the earlier run's, byte for byte")
    with check.guarded(MANIFEST):
        earlier = earlier_run(context.root, resumed)
        if earlier is None:
            check.reason = f"the earlier run {resumed.run} is not here"
            return check
        if (stored := context.manifest.software.earlier) is not None:
            programs = RunDirectory(earlier).read_manifest().programs
            check.expect("software.earlier", stored, programs)
        if resumed.checksums_sha256 is not None:
            checksums_sha256 = document_sha256(earlier / CHECKSUMS)
            check.expect("resumed.checksums_sha256", resumed.checksums_sha256, checksums_sha256)
        adopted = set(resumed.adopted) - set(resumed.recovered)
        theirs = dict(_digests(earlier / RESULTS, adopted))
        # A killed run leaves some beside its results.
        ours = dict(_digests(context.root / RESULTS, adopted))
        ours |= dict(_digests(context.root / EARLY, adopted))
        if not ours and context.cut_off:
            check.reason = "the run ended before it had taken any answer over"
            return check
        killed = context.manifest.status is RunStatus.RUNNING
        for task_id in resumed.adopted:
            if task_id in adopted and (task_id in ours or not killed):
                check.count += 1
                if ours.get(task_id) != theirs.get(task_id):
                    message = f"task {task_id!r}: is not the record of {earlier.name}"
                    check.fail(RESULTS, message)
        if n_recovered := len(set(resumed.recovered)):
            check.notes.append(f"{n_recovered} adopted answers had no record to hold them to")
    return check


def _digests(results: Path, task_ids: set[str]) -> Iterator[tuple[str, str]]:
    if not results.exists():
        return
    with opened(results, follow_links=False) as file:
        for _, line in whole_lines(file):
            if (task_id := loads(line)["task_id"]) in task_ids:
                yield task_id, hashlib.sha256(line).hexdigest()
