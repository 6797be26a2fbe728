"""From a run in MLflow back to a run directory: the original, or its files downloaded."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jevexp.store import RunDirectory
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import MANIFEST, RESULTS, SUMMARY
from jevexp.tracking.content import evidence_sha256
from jevexp.tracking.protocol import TrackingError
from jevexp.tracking.tags import EVIDENCE, PATH, RUN
from jevexp.untrusted.files import opened, read_document
from jevexp.untrusted.writing import make_folders

# What our own directories are called, and never a way to another folder.
_SEGMENT = re.compile(r"\w[\w.-]{0,199}")
# What a comparison reads, and what proves it.
NEEDED = (MANIFEST, RESULTS)
FILES = (*NEEDED, SUMMARY, CHECKSUMS)


def fetch(client: Any, run_id: str, into: Path) -> RunDirectory:
    """The directory that a run was logged from, if it is here and unchanged; else a copy.

    Raises:
        TrackingError: the run is no jevexp run that was logged to its end, or its files are not
            those that were logged.
    """
    tags = client.get_run(run_id).data.tags
    if RUN not in tags or EVIDENCE not in tags:
        raise TrackingError(
            f"MLflow run {run_id}: not a run that jevexp logged to its end; its own runs have the "
            f"tags {RUN} and {EVIDENCE}"
        )
    return _original(tags) or _download(client, run_id, tags, into)


def _original(tags: Mapping[str, str]) -> RunDirectory | None:
    directory = RunDirectory(Path(tags.get(PATH, "")))
    try:
        same = evidence_sha256(directory) == tags[EVIDENCE]
    except OSError:
        return None
    return directory if same else None


def _download(client: Any, run_id: str, tags: Mapping[str, str], into: Path) -> RunDirectory:
    there = {entry.path for entry in client.list_artifacts(run_id)}
    if missing := [name for name in NEEDED if name not in there]:
        raise TrackingError(f"MLflow run {run_id}: its artifact {missing[0]} is missing")
    # The run's own name below its id: people see it in tables. The store may say anything.
    path = into / run_id / (tags[RUN] if _SEGMENT.fullmatch(tags[RUN]) else "run")
    make_folders(path)
    for name in FILES:
        if name in there:
            client.download_artifacts(run_id, name, str(path))
    directory = RunDirectory(path)
    _verify(directory, run_id, tags[EVIDENCE])
    return directory


def _verify(directory: RunDirectory, run_id: str, logged: str) -> None:
    """Hold the files against their checksums, and those against what was logged.

    Raises:
        TrackingError: naming the file that differs.
    """
    if evidence_sha256(directory) != logged:
        raise TrackingError(f"MLflow run {run_id}: its artifacts are not those that were logged")
    sums = directory.path / CHECKSUMS
    listed = _checksums(sums) if sums.is_file() else {}
    for name in FILES:
        path = directory.path / name
        if name in listed and path.is_file():
            found = _sha256(path)
            if found != listed[name]:
                raise TrackingError(
                    f"MLflow run {run_id}: its artifact {name} is not what was logged"
                )


def _checksums(path: Path) -> dict[str, str]:
    text = read_document(path, follow_links=False).decode()
    lines = (line.partition("  ") for line in text.splitlines())
    return {name: digest for digest, _, name in lines}


def _sha256(path: Path) -> str:
    with opened(path, follow_links=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
