"""`jevexp list`: which runs it finds, in which order, and what it says of them."""

from pathlib import Path

import pytest

from jevexp.cli.verbs.list import main
from jevexp.errors import InputError
from tests.support.cli import jevexp
from tests.support.runs import make_killed_run, make_run, noul_tasks

TASKS = noul_tasks(4)


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    folder = tmp_path / "outputs"
    make_run(folder / "2026-03-01" / "old", TASKS, wrong_ids=["t1"])
    make_run(
        folder / "sweeps" / "2026-03-02" / "sweep" / "0-new",
        TASKS,
        started="2026-03-02T10:00:00.000Z",
    )
    make_killed_run(folder / "2026-02-01" / "killed", TASKS, attempted=2)
    return folder


def listed(outputs: Path, capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """The rows of the table."""
    main(["--outputs", str(outputs), *options])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line.startswith(("2026", "sweeps"))]


def test_runs_of_sweeps_and_single_ones_come_newest_first(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--outputs", str(outputs)]) == 0

    said = capsys.readouterr().out
    assert said.index("0-new") < said.index("old")
    assert said.index("0-new") < said.index("killed")
    assert "3 of 3 runs" in said


def test_a_row_has_status_and_headline_numbers(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row.split() for row in listed(outputs, capsys)]

    assert ["2026-03-01/old", "complete", "4/4", "0.750"] in [row[:4] for row in rows]
    assert next(row for row in rows if row[0].endswith("killed"))[1] == "running"


def test_filters_leave_only_what_matches(outputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(listed(outputs, capsys, "--status", "running")) == 1
    assert len(listed(outputs, capsys, "--model", "gemma4_q4km")) == 3
    assert len(listed(outputs, capsys, "--model", "gemma-4-31b-kv9-q4km-mm")) == 3
    assert listed(outputs, capsys, "--model", "other") == []
    assert listed(outputs, capsys, "--dataset", "easy") == []


def test_a_damaged_run_is_named_and_the_others_are_listed(
    outputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (outputs / "2026-03-01" / "old" / "manifest.json").write_text("{")

    assert main(["--outputs", str(outputs)]) == 1

    said = capsys.readouterr()
    assert "0-new" in said.out
    assert said.err.startswith("not readable: ")


def test_a_folder_that_is_not_there_is_unusable_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        main(["--outputs", str(tmp_path / "none")])


def test_the_verb_is_called_list(outputs: Path) -> None:
    done = jevexp("list", cwd=outputs.parent)

    assert done.status == 0
    assert "3 of 3 runs in outputs" in done.out
