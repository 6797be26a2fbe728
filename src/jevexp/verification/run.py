"""Verifies one run directory, from its files to its numbers."""

from pathlib import Path

from jevexp.errors import InputError
from jevexp.store import Manifest, RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, MANIFEST, RAW, RESULTS, SUMMARY
from jevexp.verification.check import Check, Report
from jevexp.verification.context import (
    Tree,
    VerificationContext,
    check_files,
    check_tasks,
    read_tree,
)
from jevexp.verification.manifest import check_identity, check_manifest, check_sums, read_manifest
from jevexp.verification.records import RecordPass, check_resumed

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
    manifest_check, manifest = read_manifest(root, here=has_manifest)
    if manifest is None and not _left_by_a_run(tree):
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


def _left_by_a_run(tree: Tree) -> bool:
    """Whether a directory holds what only runs leave; others have files of the same names.

    The results are made before the first manifest, and filled after it.
    """
    begun = tree.files.get(RESULTS) == 0
    return begun or bool(tree.below(RAW)) or any(name in tree.files for name in _ONLY_OF_RUNS)


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
