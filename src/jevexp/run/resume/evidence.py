"""Whether an earlier run's evidence is what it says; only what holds is taken over."""

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from jevexp.backends.rereading import decision_of
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness import Score, score
from jevexp.harness.scoring import said_null_before
from jevexp.run.resume.earlier import Earlier
from jevexp.store.adoption import AdoptedAnswer
from jevexp.store.checksums import CHECKSUMS
from jevexp.untrusted.files import read_document
from jevexp.verification import verify_run


def check_run(earlier: Earlier, tasks: Path | None = None) -> None:
    """Verify the run as a whole, as far as it got.

    Raises:
        InputError: a check failed; says which one, where and why.
    """
    report = verify_run(earlier.path, tasks=tasks)
    for check in report.checks:
        for failure in check.failures[:1]:
            raise InputError(
                f"resume: {earlier.path}: fails verification: {check.name}: {failure.place}: "
                f"{failure.message}; see jevexp verify"
            )


def checksums_sha256(earlier: Earlier) -> str | None:
    """The SHA-256 of the checksums; None for a run that was killed before it wrote them."""
    path = earlier.path / CHECKSUMS
    if not path.exists():
        return None
    return hashlib.sha256(read_document(path, follow_links=False)).hexdigest()


def check_answer(answer: AdoptedAnswer, tasks: Mapping[str, Task]) -> None:
    """Hold one record against its task, its raw evidence and its score.

    Also those that are in no results yet, which verification does not look at.

    Raises:
        InputError: naming the task, and what does not fit.
    """
    record = answer.record
    task = tasks.get(record.task_id)
    if task is None:
        raise InputError(f"resume: {_place(answer)}: is none of the run's tasks")
    if (record.family, record.split, record.group) != (task.family, task.split, task.group):
        raise InputError(f"resume: {_place(answer)}: its record belongs to another task")
    try:
        answer.raw_bytes()
    except OSError as error:
        raise InputError(f"resume: {answer.raw_file}: {error.strerror}") from error
    if found := [name for name in _SCORES if _differs(name, task, record)]:
        raise InputError(f"resume: {_place(answer)}: scored again, {found[0]} is another")


_SCORES = tuple(field.name for field in fields(Score))


def _differs(name: str, task: Task, record: Record) -> bool:
    # The distribution as it was returned is what is scored; the response has no part in it.
    given = score(task, decision_of(record, None))
    if name == "correct" and said_null_before(task, given, record.correct):
        return False
    return bool(getattr(given, name) != getattr(record, name))


def _place(answer: AdoptedAnswer) -> str:
    return f"task {answer.record.task_id!r}"
