"""The description of a comparison in Markdown."""

from pathlib import Path

from jevexp.analysis.compare import compare
from jevexp.analysis.estimates import Options
from jevexp.cli.tracking import comparison_note
from tests.analysis.made import finished
from tests.support.runs import noul_tasks

TASKS = noul_tasks(40)


def note(folder: Path, wrong: list[int], **links: str) -> str:
    runs = [
        finished(folder / f"{n}-run", TASKS, {f"t{k}" for k in range(count)})
        for n, count in enumerate(wrong)
    ]
    return comparison_note(compare(runs, Options(draws=200)), "/place", links.get)


def test_it_ranks_the_runs_and_says_what_follows(tmp_path: Path) -> None:
    text = note(tmp_path, [20, 0, 20])

    lines = text.splitlines()
    board = lines[lines.index("### Runs") + 4 :][:3]
    assert [line.split("|")[1].strip() for line in board] == [
        "gemma4_q4km #2 (1-run)",
        "gemma4_q4km #1 (0-run)",
        "gemma4_q4km #3 (2-run)",
    ]
    assert "| 40/40 | 1.000 (0.9" in board[0]
    assert lines[0].startswith("3 runs on **original**, 40 tasks; intervals at 95 %.")
    against = lines[lines.index("### Against gemma4_q4km #1 (0-run)") + 4 :][:2]
    assert "**better**: +0.500 (+0.3" in against[0]
    assert "| 20 |" in against[0]
    assert "| **inconclusive**: +0.000" in against[1]
    assert lines[-1] == "Runs: `/place`"


def test_runs_lead_to_their_pages(tmp_path: Path) -> None:
    text = note(tmp_path, [0, 1], **{"1-run": "#/there"})

    assert "[gemma4_q4km #2 (1-run)](#/there)" in text
    assert "[gemma4_q4km #1" not in text


def test_many_runs_fit_into_what_mlflow_keeps(tmp_path: Path) -> None:
    text = note(tmp_path, [0] * 60)

    assert len(text) < 8000
    assert text.count("more in `report.html`") == 2
    assert text.splitlines()[-1] == "Runs: `/place`"
