"""Taking over an earlier run's answers: whether it may be done, answer by answer."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from jevexp.backends.rereading import decision_of
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.scoring import Score, said_null_before, score
from jevexp.run import Plan
from jevexp.run.earlier import Earlier
from jevexp.store.adoption import AdoptedAnswer, Adoption
from jevexp.store.checksums import CHECKSUMS, document_sha256
from jevexp.store.directory import MANIFEST
from jevexp.store.manifest import Resumed, Session
from jevexp.verification import verify_run


def adopt(earlier: Earlier, plan: Plan, *, charged_usd: float | None = None) -> Plan:
    """The plan with the earlier run's answers in it, checked one by one.

    Args:
        earlier: the run that ended early.
        plan: the same run as it would start now.
        charged_usd: what earlier sessions were charged, in US dollars; None: what this run was.

    Raises:
        InputError: the tasks are others now, the evidence does not hold, or nothing is left to ask.
    """
    manifest = earlier.manifest
    _check_same_tasks(earlier, plan)
    check_run(earlier)
    seal = checksums_sha256(earlier)
    tasks = {task.id: task for task in plan.tasks}
    found: dict[str, tuple[AdoptedAnswer, bool]] = {}
    for answer, recovered in earlier.answers():
        check_answer(answer, tasks)
        found[answer.record.task_id] = (answer, recovered)
    in_order = [found[task.id] for task in plan.tasks if task.id in found]
    answers = tuple(answer for answer, _ in in_order)
    if len(answers) == len(plan.tasks) and seal is not None:
        raise InputError(
            f"resume: {earlier.path}: every task was answered; there is nothing left to ask"
        )
    if answers and manifest.fingerprint is None:
        raise InputError(
            f"resume: {earlier.path}: holds answers and no fingerprint of who gave them"
        )
    if charged_usd is None:
        charged_usd = earlier.charged_usd()
    adopted = [answer.record.task_id for answer in answers]
    entry = Resumed(
        run=manifest.run,
        path=str(earlier.path.absolute()),
        manifest_sha256=document_sha256(earlier.path / MANIFEST),
        checksums_sha256=seal,
        adopted=adopted,
        recovered=[answer.record.task_id for answer, recovered in in_order if recovered],
        charged_usd=charged_usd,
        sessions=_sessions(earlier, adopted),
    )
    adoption = Adoption(entry, answers, manifest.fingerprint, tuple(manifest.programs))
    if plan.settings.identity == "strict" and len(adoption.models) > 1:
        raise InputError(
            f"resume: {earlier.path}: several models answered: {', '.join(adoption.models)}; "
            "what they said belongs into no single run"
        )
    return replace(plan, adoption=adoption, charged_before_usd=charged_usd)


def _check_same_tasks(earlier: Earlier, plan: Plan) -> None:
    before = earlier.manifest.dataset.dataset_hash
    if before != plan.dataset.dataset_hash:
        raise InputError(
            f"resume: dataset_hash: the tasks have changed since the run: {before} then, "
            f"{plan.dataset.dataset_hash} now"
        )
    if earlier.manifest.counts.requested != len(plan.tasks):
        raise InputError(
            f"resume: caps.limit: {earlier.manifest.counts.requested} tasks were requested, "
            f"{len(plan.tasks)} are now"
        )


def _sessions(earlier: Earlier, adopted: Sequence[str]) -> list[Session]:
    """Who gave which of the adopted answers: the earlier run, or one that it had resumed itself."""
    manifest = earlier.manifest
    before = manifest.resumed.sessions if manifest.resumed else []
    given = {task_id for session in before for task_id in session.tasks}
    own = [task_id for task_id in adopted if task_id not in given]
    return [*before, Session(run=manifest.run, started=manifest.started, tasks=own)]


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
    return document_sha256(path) if path.exists() else None


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
