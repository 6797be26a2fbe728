"""Going on with an earlier run: read from its directory, checked, its answers taken over."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from jevexp.backends.rereading import decision_of
from jevexp.core.json import loads
from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.harness.scoring import Score, said_null_before, score
from jevexp.harness.upstream import RESULTS as UPSTREAM_RESULTS
from jevexp.harness.upstream import read_record
from jevexp.ledger.file import FileLedger
from jevexp.ledger.state import LedgerError
from jevexp.run.planning import Plan
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS, document_sha256
from jevexp.store.directory import LEDGER, MANIFEST
from jevexp.store.finding import earlier_run
from jevexp.store.manifest import Resumed, Session
from jevexp.store.records import AdoptedAnswer, Adoption
from jevexp.untrusted.files import opened, whole_lines
from jevexp.verification import verify_run

# Far more than anybody starts in vain.
_MOST_BEFORE = 100


@dataclass(frozen=True, slots=True)
class Earlier:
    """A run that ended early and that nobody writes any more."""

    directory: RunDirectory
    manifest: Manifest

    @property
    def path(self) -> Path:
        """Its directory."""
        return self.directory.path

    def answers(self) -> Iterator[tuple[AdoptedAnswer, bool]]:
        """Every answer in it, each once, and whether its record had not been written yet.

        Raises InputError: a file is damaged.
        """
        seen: set[str] = set()
        for record, recovered in self.records():
            if record.ok and record.task_id not in seen:
                seen.add(record.task_id)
                yield AdoptedAnswer(record, self.directory.raw_file(record.task_id)), recovered
        settled = self._settled()
        for held in self.directory.held():
            record = held.record
            if not record.ok or record.task_id in seen or record.charged_usd > record.reserved_usd:
                continue
            if record.task_id not in settled:
                # What the ledger says: an open reservation is charged in full.
                record = record.model_copy(update={"charged_usd": record.reserved_usd})
            yield AdoptedAnswer(record, self.directory.raw_file(record.task_id), held.raw), True

    def charged_usd(self) -> float:
        """What this run and those before it were charged in ledgers of their own, in US dollars.

        Raises InputError: the ledger is damaged.
        """
        if self.manifest.config.resolved["caps"]["ledger"] is not None:
            return 0.0
        before = self.manifest.resumed.charged_usd if self.manifest.resumed else 0.0
        return before + charged_in(self.path / LEDGER)

    def records(self) -> Iterator[tuple[Record, bool]]:
        """Every record in it, failed attempts too, and whether it was not in the results yet.

        Raises InputError: a file is damaged.
        """
        try:
            for record in self.directory.records():
                yield record, False
            for record in self.directory.early_records():
                yield record, True
            for record in self._not_taken_over():
                yield record, True
        except FileNotFoundError:
            # Killed before it had its results.
            return
        except OSError as error:
            raise InputError(f"resume: {error.filename}: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"resume: {error}") from error

    def _not_taken_over(self) -> Iterator[Record]:
        """Records that the pinned harness had written itself."""
        for place, line in _lines(self.path / UPSTREAM_RESULTS):
            try:
                yield read_record(line)
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{place}: not a record") from error

    def _settled(self) -> set[str]:
        """The tasks of which this run's own ledger rows say what they cost."""
        task_ids = set()
        for place, line in _lines(self.path / LEDGER):
            try:
                row = loads(line)
                if row["event"] == "settle":
                    task_ids.add(row["meta"]["task_id"])
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"resume: {place}: not a ledger row") from error
        return task_ids


def _lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """The whole lines of a file, and where each is; none where there is no file."""
    if path.exists():
        with opened(path, follow_links=False) as file:
            for number, line in whole_lines(file):
                yield f"{path}:{number}", line


def charged_in(ledger: Path) -> float:
    """What a ledger was charged in total, in US dollars; nothing where there is none.

    Raises InputError: the ledger is damaged.
    """
    if not ledger.exists():
        return 0.0
    try:
        with FileLedger(ledger, 0.0, read_only=True) as opened_ledger:
            return opened_ledger.charged_usd
    except LedgerError as error:
        raise InputError(f"resume: {error}") from error


def read_earlier(path: Path, *, ended: bool = False) -> Earlier:
    """Read the run that is to be resumed.

    One that was refused, or killed while it took over an earlier run's answers, has asked nothing
    itself: then it is that earlier run which is read.

    Args:
        path: its directory.
        ended: whether a complete run is read as well.

    Raises InputError: it is no run, it is complete, it was refused, it is still being written, or
    the runs before it are not there, or too many.
    """
    if not path.is_dir():
        raise InputError(f"resume: {path}: no such folder; give a run's directory, or a sweep's")
    first = path
    for _ in range(_MOST_BEFORE):
        directory = RunDirectory(path)
        manifest = directory.read_manifest()
        resumed = manifest.resumed
        if directory.in_use:
            raise InputError(
                f"resume: {path}: a process is still writing it; wait, or stop that first"
            )
        if manifest.status is not RunStatus.REFUSED:
            if not ended and manifest.status is RunStatus.COMPLETE and (path / CHECKSUMS).exists():
                raise InputError(f"resume: {path}: is complete; there is nothing left to ask")
            earlier = Earlier(directory, manifest)
            if resumed is None:
                return earlier
            recorded = {record.task_id for record, _ in earlier.records()}
            if recorded.issuperset(resumed.adopted):
                return earlier
        elif resumed is None:
            raise InputError(f"resume: {path}: was refused and asked nothing; run it again instead")
        before = earlier_run(path, resumed)
        if before is None:
            raise InputError(
                f"resume: {path}: asked nothing itself, and the run that it goes on with is not at "
                f"{resumed.path} as it was; put that back there, or beside this one"
            )
        path = before
    raise InputError(
        f"resume: {first}: more than {_MOST_BEFORE} runs before it that each asked nothing; name "
        "the one that holds the answers"
    )


def adopt(earlier: Earlier, plan: Plan, *, charged_usd: float | None = None) -> Plan:
    """Add the earlier run's answers to the plan, each of them checked.

    Args:
        earlier: the run that ended early.
        plan: the same run as it would start now.
        charged_usd: what earlier sessions were charged, in US dollars; None: what this run was.

    Raises:
        InputError: the tasks are others now, the evidence does not hold, or nothing is left to ask.
    """
    manifest = earlier.manifest
    _check_same_tasks(manifest, plan)
    for check in verify_run(earlier.path).checks:
        for failure in check.failures[:1]:
            raise InputError(
                f"resume: {earlier.path}: fails verification: {check.name}: {failure.place}: "
                f"{failure.message}; see jevexp verify"
            )
    # None for a run that was killed before it wrote them.
    checksums = earlier.path / CHECKSUMS
    checksums_sha256 = document_sha256(checksums) if checksums.exists() else None
    tasks = {task.id: task for task in plan.tasks}
    by_task: dict[str, tuple[AdoptedAnswer, bool]] = {}
    for answer, recovered in earlier.answers():
        _check_answer(answer, tasks)
        by_task[answer.record.task_id] = answer, recovered
    in_order = [by_task[task.id] for task in plan.tasks if task.id in by_task]
    answers = tuple(answer for answer, _ in in_order)
    if len(answers) == len(plan.tasks) and checksums_sha256 is not None:
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
    # Who gave which answers: this run, or one that it had resumed itself.
    sessions = manifest.resumed.sessions if manifest.resumed else []
    of_others = {task_id for session in sessions for task_id in session.tasks}
    own = [task_id for task_id in adopted if task_id not in of_others]
    entry = Resumed(
        run=manifest.run,
        path=str(earlier.path.absolute()),
        manifest_sha256=document_sha256(earlier.path / MANIFEST),
        checksums_sha256=checksums_sha256,
        adopted=adopted,
        recovered=[answer.record.task_id for answer, recovered in in_order if recovered],
        charged_usd=charged_usd,
        sessions=[*sessions, Session(run=manifest.run, started=manifest.started, tasks=own)],
    )
    adoption = Adoption(entry, answers, manifest.fingerprint, tuple(manifest.programs))
    if plan.settings.identity == "strict" and len(adoption.models) > 1:
        raise InputError(
            f"resume: {earlier.path}: several models answered: {', '.join(adoption.models)}; "
            "what they said belongs into no single run"
        )
    return replace(plan, adoption=adoption, charged_before_usd=charged_usd)


def _check_same_tasks(manifest: Manifest, plan: Plan) -> None:
    before = manifest.dataset.dataset_hash
    if before != plan.dataset.dataset_hash:
        raise InputError(
            f"resume: dataset_hash: the tasks have changed since the run: {before} then, "
            f"{plan.dataset.dataset_hash} now"
        )
    if manifest.counts.requested != len(plan.tasks):
        raise InputError(
            f"resume: caps.limit: {manifest.counts.requested} tasks were requested, "
            f"{len(plan.tasks)} are now"
        )


def _check_answer(answer: AdoptedAnswer, tasks: Mapping[str, Task]) -> None:
    """Hold one record against task, raw evidence and score; raises InputError."""
    # Also those that are in no results yet, which verification does not look at.
    record = answer.record
    place = f"resume: task {record.task_id!r}"
    task = tasks.get(record.task_id)
    if task is None:
        raise InputError(f"{place}: is none of the run's tasks")
    if (record.family, record.split, record.group) != (task.family, task.split, task.group):
        raise InputError(f"{place}: its record belongs to another task")
    try:
        answer.raw_bytes()
    except OSError as error:
        raise InputError(f"resume: {answer.raw_file}: {error.strerror}") from error
    # The distribution as it was returned is what is scored; the response has no part in it.
    scored = score(task, decision_of(record, None))
    for name in (field.name for field in fields(Score)):
        if name == "correct" and said_null_before(task, scored, record.correct):
            continue
        if getattr(scored, name) != getattr(record, name):
            raise InputError(f"{place}: scored again, {name} is another")
