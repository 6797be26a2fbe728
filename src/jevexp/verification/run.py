"""Verifies one run directory, from its files to its numbers."""

from pathlib import Path

from jevexp.errors import InputError
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, MANIFEST, RAW, RESULTS, SUMMARY
from jevexp.verification.check import Check, Report
from jevexp.verification.context import VerificationContext, check_tasks
from jevexp.verification.files import Tree, check_files, made_later, read_tree
from jevexp.verification.manifest import check_identity, check_manifest, no_manifest, read_manifest
from jevexp.verification.records import RecordPass
from jevexp.verification.resumed import check_resumed
from jevexp.verification.summary import check_sums

_ONLY_OF_RUNS = (CHECKSUMS, SUMMARY, LEDGER)
_AT_WORK = "a process is still writing it"


def verify_run(root: Path, *, tasks: Path | None = None) -> Report:
    """Prove a run directory again: offline, and without running anything of its contents.

    Args:
        root: the run's directory.
        tasks: a copy of the dataset's task file, or a folder of them, where the run's are not here.

    Raises:
        InputError: it is no run directory.
    """
    try:
        tree = read_tree(root)
    except OSError as error:
        raise InputError(f"{root}: {error.strerror}; give a run directory") from error
    has_manifest = MANIFEST in tree.files or MANIFEST in tree.faults
    section, manifest = read_manifest(root) if has_manifest else (no_manifest(), None)
    if manifest is None and not _left_by_a_run(tree):
        reason = "is not that of a run" if has_manifest else "is missing"
        raise InputError(
            f"{root}: is no run directory: {MANIFEST} {reason}; give a run directory, or a sweep's"
        )
    files = check_files(root, tree)
    checks = [files, section]
    incomplete = _incomplete(root, tree, manifest)
    if incomplete == _AT_WORK:
        # What is read now is older than what is read next.
        section.skip(_AT_WORK)
    elif manifest is not None:
        checks += _of_content(root, tree, manifest, tasks, section)
    return Report(
        path=root,
        run=manifest.run if manifest else None,
        status=manifest.status.value if manifest else None,
        incomplete=incomplete,
        checks=tuple(checks),
        not_covered=tuple(sorted(name for name in tree.files if _uncovered(name, tree))),
    )


def _left_by_a_run(tree: Tree) -> bool:
    """Whether a directory holds what only runs leave; others have files of the same names.

    The results are made before the first manifest, and filled after it.
    """
    begun = tree.files.get(RESULTS) == 0
    return begun or bool(tree.below(RAW)) or any(name in tree.files for name in _ONLY_OF_RUNS)


def _of_content(
    root: Path, tree: Tree, manifest: Manifest, given: Path | None, section: Check
) -> list[Check]:
    """Everything that is about more than bytes."""
    dataset, loaded = check_tasks(manifest, given)
    planned = loaded.tasks[: manifest.counts.requested] if loaded else None
    context = VerificationContext(root, tree, manifest, planned)
    looked: RecordPass | None = None
    with section.guarded(MANIFEST):
        looked = RecordPass(context)
    if looked is None:
        return [dataset]
    found = looked.run()
    check_manifest(context, looked.records, section)
    checks = [
        dataset,
        *found,
        check_identity(context, looked.records),
        *check_sums(context, looked),
    ]
    if context.resumed:
        checks.append(check_resumed(context))
    return checks


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


def _uncovered(name: str, tree: Tree) -> bool:
    return made_later(name) or CHECKSUMS not in tree.files or name == CHECKSUMS
