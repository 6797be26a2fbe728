"""Which runs can be compared, and what is said about those that can."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from jevexp.analysis.runs import check_comparable, read_run
from jevexp.errors import InputError
from jevexp.store import RunDirectory, RunStatus
from tests.analysis.made import counts, finished
from tests.support.runs import make_run, manifest, noul_tasks

TASKS = noul_tasks(4)


def test_another_dataset_is_refused_by_its_hash(tmp_path: Path) -> None:
    first = finished(tmp_path / "a", TASKS)
    entry = manifest(tmp_path).dataset.model_dump() | {"dataset_hash": "ee" * 32}
    second = finished(tmp_path / "b", TASKS, dataset=entry)

    with pytest.raises(InputError, match=r"dataset_hash is eeeeeeeeeeee \(original\), not abab"):
        check_comparable([first, second])


def test_another_number_of_tasks_is_refused(tmp_path: Path) -> None:
    first = finished(tmp_path / "a", TASKS)
    second = finished(tmp_path / "b", TASKS, counts=counts(3))

    with pytest.raises(InputError, match=r"3 of them requested, not 4"):
        check_comparable([first, second])


def test_one_run_is_no_comparison(tmp_path: Path) -> None:
    run = finished(tmp_path / "a", TASKS)

    with pytest.raises(InputError, match="at least two"):
        check_comparable([run])
    with pytest.raises(InputError, match="given twice"):
        check_comparable([run, run])


def test_a_copy_is_refused_whatever_it_is_called_and_a_run_of_the_same_name_is_not(
    tmp_path: Path,
) -> None:
    original = finished(tmp_path / "monday" / "run", TASKS)
    shutil.copytree(original.path, tmp_path / "copied")
    copied = read_run(RunDirectory(tmp_path / "copied"), lambda _: TASKS)
    later = finished(tmp_path / "tuesday" / "run", TASKS, started="2026-03-01T10:00:00.001Z")

    check_comparable([original, later])
    with pytest.raises(InputError) as error:
        check_comparable([later, original, copied])
    assert str(error.value) == (
        f"{tmp_path}/copied: a copy of {tmp_path}/monday/run: both are the run 'run' that started "
        "at 2026-03-01T10:00:00.000Z; a run cannot be compared with itself"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"sweep": "another"},
        {"config": {"sha256": "ee" * 32}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_runs_of_one_name_and_start_are_two_where_anything_else_says_so(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    first = finished(tmp_path / "a" / "0", TASKS)
    if "config" in changed:
        changed = {"config": first.manifest.config.model_dump() | changed["config"]}

    check_comparable([first, finished(tmp_path / "b" / "0", TASKS, **changed)])


def test_a_refused_run_holds_nothing_to_compare(tmp_path: Path) -> None:
    directory = make_run(tmp_path / "a", TASKS, attempted=0, status=RunStatus.REFUSED)

    with pytest.raises(InputError, match="was refused"):
        read_run(directory, lambda _: TASKS)


def test_results_that_are_missing_or_of_other_tasks_are_refused(tmp_path: Path) -> None:
    directory = make_run(tmp_path / "a", TASKS)

    with pytest.raises(InputError, match="'t3' has a record"):
        read_run(directory, lambda _: TASKS[:3])
    (directory.path / "results.jsonl").unlink()
    with pytest.raises(InputError, match="No such file"):
        read_run(directory, lambda _: TASKS)
