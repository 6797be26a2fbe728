"""The run's own ledger: one reservation a task, settled as recorded, adding up to the charge."""

from collections.abc import Collection, Mapping

from jevexp.core.record import Record
from jevexp.harness.stops import StopReason
from jevexp.ledger.books import EPSILON_USD
from jevexp.store.directory import LEDGER, MANIFEST, RESULTS
from jevexp.verification.check import Check
from jevexp.verification.differences import same
from jevexp.verification.rows import Rows, read_rows
from jevexp.verification.subject import Subject


def check_ledger(
    subject: Subject, records: Mapping[str, tuple[int, Record]], early: Collection[str]
) -> tuple[Check, Rows | None]:
    """Hold the rows against records and manifest; no rows where the run has none of its own.

    Args:
        subject: the run.
        records: line and record of every task that this run asked itself.
        early: tasks whose records were not in the results yet when the process was killed.
    """
    check = Check("ledger", "one reservation a task, settled as recorded, adding up to the charge")
    if LEDGER not in subject.tree.files:
        if records and not subject.manifest.ledger.shared:
            check.fail(LEDGER, "is missing")
        else:
            check.skip(f"there is no {LEDGER}: the run has no rows of its own")
        return check, None
    rows = read_rows(subject, check)
    with check.guarded(LEDGER):
        _check_records(subject, rows, records, early, check)
    _check_manifest(subject, rows, check)
    return check, rows


def _check_records(
    subject: Subject,
    rows: Rows,
    records: Mapping[str, tuple[int, Record]],
    early: Collection[str],
    check: Check,
) -> None:
    for task_id, (line, record) in records.items():
        one = rows.by_task.get(task_id)
        if one is None:
            check.fail(RESULTS, f"task {task_id!r} has no reservation in {LEDGER}", line=line)
        elif one.charged_usd is None:
            check.fail(LEDGER, f"task {task_id!r} has a record and no settlement", line=one.line)
        elif (one.reserved_usd, one.charged_usd, one.basis) != (
            record.reserved_usd,
            record.charged_usd,
            record.cost_basis,
        ):
            message = f"reserved_usd, charged_usd or cost_basis: not as in {LEDGER}:{one.line}"
            check.fail(RESULTS, message, line=line)
    if [task_id for task_id in rows.by_task if task_id in records] != list(records):
        check.fail(LEDGER, "the reservations are in another order than the records")
    missing = [one for one in rows.by_task if one not in records and one not in early]
    rows.cut_off = _explained(subject, rows, missing)
    for task_id in missing:
        if task_id not in rows.cut_off:
            message = f"task {task_id!r} has a reservation and no record, and nothing says why"
            check.fail(LEDGER, message, line=rows.by_task[task_id].line)


def _explained(subject: Subject, rows: Rows, missing: list[str]) -> set[str]:
    """The reservations without a record that the protocol leaves behind."""
    known = [one for one in missing if subject.tasks is None or one in subject.places]
    reason, at_once = subject.manifest.stop_reason, subject.manifest.concurrency
    given_back = {one for one in known if at_once > 1 and rows.by_task[one].given_back}
    if reason == StopReason.OVERCHARGED:
        return given_back.union(set(known).intersection(rows.overcharged))
    if not (subject.cut_off or reason == StopReason.LEDGER_UNAVAILABLE):
        return given_back
    left = [one for one in known if one not in given_back]
    if at_once == 1:
        # One after the other, only the last one can have been in flight.
        return set(left) if left == list(rows.by_task)[-1:] else set()
    # In flight, reserved ahead, and answered without a record yet.
    return given_back.union(left) if len(left) <= 3 * at_once else given_back


def _check_manifest(subject: Subject, rows: Rows, check: Check) -> None:
    said = subject.manifest.ledger
    if subject.manifest.finished is None:
        return
    check.count += 1
    if not same(said.charged_by_run_usd, rows.charged_usd):
        check.fail(
            MANIFEST,
            f"ledger.charged_by_run_usd: {said.charged_by_run_usd!r}, the rows add up to "
            f"{rows.charged_usd!r}",
        )
    if not said.shared and said.charged_usd != said.charged_by_run_usd:
        check.fail(MANIFEST, "ledger.charged_usd: nobody else charges a ledger that is not shared")
    if said.charged_usd < said.charged_by_run_usd - EPSILON_USD:
        check.fail(MANIFEST, "ledger.charged_usd: less than this run's own charge")
    if rows.cap_usd is not None and not same(said.cap_usd, rows.cap_usd):
        check.fail(MANIFEST, f"ledger.cap_usd: is not the cap in {LEDGER}:1")
