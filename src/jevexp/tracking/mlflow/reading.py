"""Finds runs that were logged earlier."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from jevexp.store import RunDirectory
from jevexp.store.checksums import CHECKSUMS, file_sha256, read_checksums
from jevexp.store.directory import MANIFEST, RESULTS, SUMMARY
from jevexp.tracking import TrackedRun, TrackingError
from jevexp.tracking.mlflow.content import evidence_sha256
from jevexp.tracking.mlflow.labels import DATASET_HASH, EVIDENCE, KIND, PATH, RUN, SWEEP, TRACES
from jevexp.untrusted.writing import make_folders

# More do not fit on a screen side by side.
NEWEST = 10
NEWEST_FIRST = ["attributes.start_time DESC"]
OLDEST_FIRST = ["attributes.start_time ASC"]
# MLflow answers in pages; so many runs fit on one.
PAGE = 1000


def find_runs(client: Any, experiment_id: str, sweep: str | None) -> list[TrackedRun]:
    """The runs of a sweep, oldest first.

    Without a sweep: those of the sweep that ran last, or, if the newest run has none, the newest
    runs on the same tasks.
    """
    if sweep is None:
        newest = client.search_runs(
            [experiment_id], f"tags.`{KIND}` = 'run'", order_by=NEWEST_FIRST, max_results=NEWEST
        )
        if not newest:
            return []
        sweep = newest[0].data.tags.get(SWEEP)
        if sweep is None:
            tasks = newest[0].data.tags.get(DATASET_HASH)
            same = [run for run in newest if run.data.tags.get(DATASET_HASH) == tasks]
            return [tracked(run) for run in reversed(same)]
    return select_runs(client, experiment_id, f"tags.`{SWEEP}` = {quoted(sweep)}")


def select_runs(client: Any, experiment_id: str, where: str) -> list[TrackedRun]:
    """All runs of an experiment that a filter in MLflow's language selects, oldest first.

    What describes several runs, such as a comparison, is no run.
    """
    runs: list[TrackedRun] = []
    token = None
    while True:
        page = client.search_runs(
            [experiment_id], where, order_by=OLDEST_FIRST, max_results=PAGE, page_token=token
        )
        runs += [tracked(run) for run in page if run.data.tags.get(KIND) == "run"]
        if not (token := page.token):
            return runs


def quoted(name: str) -> str:
    """A name as a text of the filter's; either quote may be part of what people call a sweep."""
    quote = '"' if "'" in name else "'"
    return f"{quote}{name}{quote}"


def tracked(run: Any) -> TrackedRun:
    """A run of MLflow's as the rest of jevexp knows it."""
    return TrackedRun(
        run_id=run.info.run_id,
        experiment_id=run.info.experiment_id,
        name=run.info.run_name,
        directory=run.data.tags.get(RUN, ""),
        traced=TRACES in run.data.tags,
    )


# What our own directories are called, and never a way to another folder.
_SEGMENT = re.compile(r"\w[\w.-]{0,199}")
# What a comparison reads, and what proves it.
NEEDED = (MANIFEST, RESULTS)
FILES = (*NEEDED, SUMMARY, CHECKSUMS)


def fetch(client: Any, run_id: str, into: Path) -> RunDirectory:
    """The directory that a run was logged from, if it is here and unchanged; else a copy.

    Raises TrackingError: the run is no jevexp run that was logged to its end, or its files are not
    those that were logged.
    """
    tags = client.get_run(run_id).data.tags
    if RUN not in tags or EVIDENCE not in tags:
        raise TrackingError(
            f"MLflow run {run_id}: not a run that jevexp logged to its end; its own runs have the "
            f"tags {RUN} and {EVIDENCE}"
        )
    original = RunDirectory(Path(tags.get(PATH, "")))
    with suppress(OSError):  # it is not here
        if evidence_sha256(original) == tags[EVIDENCE]:
            return original
    return _download(client, run_id, tags, into)


def _download(client: Any, run_id: str, tags: Mapping[str, str], into: Path) -> RunDirectory:
    artifacts = {entry.path for entry in client.list_artifacts(run_id)}
    if missing := [name for name in NEEDED if name not in artifacts]:
        raise TrackingError(f"MLflow run {run_id}: its artifact {missing[0]} is missing")
    # The run's own name below its id: people see it in tables. The store may say anything.
    path = into / run_id / (tags[RUN] if _SEGMENT.fullmatch(tags[RUN]) else "run")
    make_folders(path)
    names = [name for name in FILES if name in artifacts]
    for name in names:
        client.download_artifacts(run_id, name, str(path))
    directory = RunDirectory(path)
    if evidence_sha256(directory) != tags[EVIDENCE]:
        raise TrackingError(f"MLflow run {run_id}: its artifacts are not those that were logged")
    if (path / CHECKSUMS).is_file():
        listed = {name: sha256 for _, name, sha256 in read_checksums(path)}
        for name in names:
            if name in listed and file_sha256(path / name) != listed[name]:
                raise TrackingError(
                    f"MLflow run {run_id}: its artifact {name} is not what was logged"
                )
    return directory
