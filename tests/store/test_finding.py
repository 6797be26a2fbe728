"""Runs at a path, in a sweep and below all runs, and the file of a sweep."""

import hashlib
from pathlib import Path

import pytest

from jevexp.errors import InputError
from jevexp.store.finding import (
    SWEEP_FILE,
    PlannedRun,
    SweepFile,
    earlier_run,
    read_sweep_file,
    run_directories,
    runs_below,
    sweep_members,
)
from jevexp.store.manifest import Resumed

# Ten comes after nine; what has no number, or one that is too long to be one, comes first.
IN_ORDER = ["123456789-long", "½-half", "-minus", "none", "0-a", "1-b", "2-c", "9-d", "10-e",
            "99999999-f"]  # fmt: skip


def make_runs(folder: Path, names: list[str], file: str = "manifest.json") -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / file).write_text("{}")


def test_runs_of_a_sweep_come_by_their_numbers(tmp_path: Path) -> None:
    make_runs(tmp_path, IN_ORDER)
    in_order = [*sorted(IN_ORDER[:4]), *IN_ORDER[4:]]
    # A nought is a number, which is not told from none.
    unnumbered = sorted([*IN_ORDER[:4], "0-a"])
    assert [run.path.name for run in run_directories(tmp_path)] == [*unnumbered, *in_order[5:]]
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").write_text("")
    assert [path.name for path in sweep_members(tmp_path)] == [*unnumbered, *in_order[5:]]
    assert sweep_members(tmp_path / "nowhere") == []


def test_numbers_decide_before_names(tmp_path: Path) -> None:
    make_runs(tmp_path, ["10-a", "9-z", "9-b", "2-x", "1-y"])
    assert [run.path.name for run in run_directories(tmp_path)] == [
        "1-y", "2-x", "9-b", "9-z", "10-a",
    ]  # fmt: skip


def test_a_run_that_has_only_begun_counts_where_it_is_asked_for(tmp_path: Path) -> None:
    make_runs(tmp_path, ["1-a"])
    make_runs(tmp_path, ["2-b"], "results.jsonl")
    (tmp_path / "3-c").symlink_to(tmp_path / "1-a")
    assert [run.path.name for run in run_directories(tmp_path)] == ["1-a"]
    assert [run.path.name for run in run_directories(tmp_path, begun=True)] == ["1-a", "2-b"]
    assert [run.path for run in run_directories(tmp_path / "1-a")] == [tmp_path / "1-a"]
    with pytest.raises(InputError, match="no run here and none right below"):
        run_directories(tmp_path / "2-b")
    with pytest.raises(InputError, match="no such folder"):
        run_directories(tmp_path / "nowhere")


def test_all_runs_are_two_folders_down_and_those_of_sweeps_four(tmp_path: Path) -> None:
    runs = ["2026-01-02/10-00", "2026-01-01/10-00", "sweeps/2026-01-01/10-00/1-a"]
    make_runs(tmp_path, [*runs, "alone", "a/b/c"])
    below = [run.path.relative_to(tmp_path).as_posix() for run in runs_below(tmp_path)]
    assert below == sorted(runs)


def test_an_earlier_run_is_found_where_it_was_or_beside_and_known_by_its_manifest(
    tmp_path: Path,
) -> None:
    make_runs(tmp_path / "outputs", ["run", "earlier"])
    manifest = tmp_path / "outputs" / "earlier" / "manifest.json"
    manifest.write_text('{"run": "earlier"}')
    resumed = Resumed(
        run="earlier", path=str(tmp_path / "moved" / "earlier"), checksums_sha256=None,
        manifest_sha256=hashlib.sha256(manifest.read_bytes()).hexdigest(),
        adopted=[], recovered=[], charged_usd=0.0, sessions=[],
    )  # fmt: skip
    run = tmp_path / "outputs" / "run"
    assert earlier_run(run, resumed) == manifest.parent
    there = resumed.model_copy(update={"path": str(manifest.parent)})
    assert earlier_run(tmp_path / "elsewhere" / "run", there) == manifest.parent
    manifest.write_text('{"run": "another"}')
    assert earlier_run(run, resumed) is None


def test_a_sweep_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    sweep = SweepFile(
        resumed="before", charged_usd=0.25, runs=[PlannedRun(config={"a": 1}, ended_in="1-a")]
    )
    sweep.write(tmp_path)
    assert read_sweep_file(tmp_path) == sweep


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{}", "is not a sweep's file: runs: Field required"),
        ('{"runs": [], "x": 1}', "is not a sweep's file: x: Extra inputs are not permitted"),
        ('{"runs": [], "charged_usd": -1}', "is not a sweep's file: charged_usd: Input should be"),
        ("hello", "is not a sweep's file: Invalid JSON"),
    ],
)
def test_what_is_no_sweep_file_is_one_line(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / SWEEP_FILE).write_text(content)
    with pytest.raises(InputError) as raised:
        read_sweep_file(tmp_path)
    assert str(raised.value).startswith(f"resume: {tmp_path / SWEEP_FILE}: {reason}")
    assert "\n" not in str(raised.value)


def test_a_folder_without_a_sweep_file_is_no_sweep(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no run, and no sweep .* sweep\.json is missing"):
        read_sweep_file(tmp_path)
