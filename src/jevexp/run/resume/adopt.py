"""From an earlier run's directory to a plan that asks only what was never answered."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from jevexp.errors import InputError
from jevexp.run import Plan
from jevexp.run.resume.earlier import Earlier
from jevexp.run.resume.evidence import check_answer, check_run, checksums_sha256
from jevexp.store.adoption import AdoptedAnswer, Adoption
from jevexp.store.directory import MANIFEST
from jevexp.store.manifest import Resumed, Session
from jevexp.untrusted.files import read_document


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
        manifest_sha256=hashlib.sha256(read_document(earlier.path / MANIFEST)).hexdigest(),
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
