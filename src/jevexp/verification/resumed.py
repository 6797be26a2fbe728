"""What a resumed run took over, held against the run that it was taken from."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from jevexp.core.json import loads
from jevexp.store import RunDirectory, RunStatus
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import EARLY, MANIFEST, RESULTS
from jevexp.untrusted.files import opened, read_document, whole_lines
from jevexp.verification.check import Check
from jevexp.verification.context import VerificationContext


def check_resumed(context: VerificationContext) -> Check:
    """Hold every adopted record against the earlier run's, byte for byte, where that is here.

    Records that had not been written when the earlier process was killed are in no results to
    hold them against.
    """
    check = Check("resumed", "every adopted record is the earlier run's, byte for byte")
    with check.guarded(MANIFEST):
        section = context.resumed
        earlier = earlier_run(context.root, section["path"], section["manifest_sha256"])
        if earlier is None:
            check.skip(f"the earlier run {section['run']} is not here")
            return check
        if context.manifest.software.earlier is not None:
            programs = RunDirectory(earlier).read_manifest().programs
            check.expect("software.earlier", context.manifest.software.earlier, programs, MANIFEST)
        if section["checksums_sha256"] is not None:
            found = _sha256(earlier / CHECKSUMS)
            check.expect("resumed.checksums_sha256", section["checksums_sha256"], found, MANIFEST)
        recovered = set(section.get("recovered", ()))
        expected = set(section["adopted"]) - recovered
        theirs = dict(_digests(earlier / RESULTS, expected))
        ours = dict(_digests(context.root / RESULTS, expected))
        # A killed run leaves some beside its results.
        ours |= dict(_digests(context.root / EARLY, expected))
        if not ours and context.cut_off:
            check.skip("the run ended before it had taken any answer over")
            return check
        killed = context.manifest.status is RunStatus.RUNNING
        for task_id in section["adopted"]:
            if task_id in recovered or (killed and task_id not in ours):
                continue
            check.count += 1
            if ours.get(task_id) != theirs.get(task_id):
                message = f"task {task_id!r}: is not the record of {earlier.name}"
                check.fail(RESULTS, message)
        if recovered:
            check.notes.append(f"{len(recovered)} adopted answers had no record to hold them to")
    return check


def earlier_run(run: Path, was_at: str, manifest_sha256: str) -> Path | None:
    """The run that another one resumed: where it was, or beside that one; None: not here.

    It is known by its manifest. So no chain of runs leads in a circle: a manifest would have to
    hold a hash that it is part of.
    """
    for path in (Path(was_at), run.resolve().parent / Path(was_at).name):
        try:
            if _sha256(path / MANIFEST) == manifest_sha256:
                return path
        except (OSError, ValueError):
            continue
    return None


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_document(path, follow_links=False)).hexdigest()


def _digests(results: Path, wanted: set[str]) -> Iterator[tuple[str, str]]:
    if not results.exists():
        return
    with opened(results, follow_links=False) as file:
        for _, line in whole_lines(file):
            if (task_id := loads(line)["task_id"]) in wanted:
                yield task_id, hashlib.sha256(line).hexdigest()
