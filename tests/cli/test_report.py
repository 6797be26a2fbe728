"""`jevexp report` and `jevexp compare --html`: where the page goes, and what is left alone."""

import json
import os
from pathlib import Path

import pytest

from jevexp.cli.arguments import report_paths
from jevexp.cli.verbs.compare import main as compare
from jevexp.cli.verbs.report import main as report
from jevexp.errors import InputError
from tests.analysis.made import counts
from tests.support.cli import jevexp
from tests.support.runs import make_killed_run, make_run, noul_tasks

TASKS = noul_tasks(12)
QUICK = ("--draws", "200")


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Two runs whose tasks are not here."""
    make_run(tmp_path / "sweep" / "0-good", TASKS, counts=counts(12))
    make_run(tmp_path / "sweep" / "1-bad", TASKS, wrong_ids=["t1", "t5"], counts=counts(12))
    return tmp_path / "sweep"


def test_a_run_gets_its_page_and_plots_beside_its_evidence(sweep: Path) -> None:
    run = sweep / "0-good"
    sealed = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}

    done = jevexp("report", str(run), *QUICK, cwd=sweep)

    assert (done.status, done.err) == (0, "")
    assert done.out == f"page: {run / 'report.html'}\n"
    assert (run / "report.html").read_text().startswith("<!doctype html>")
    assert {path.suffix for path in (run / "plots").iterdir()} == {".svg", ".png", ".csv"}
    assert {path: path.read_bytes() for path in sealed} == sealed


def test_a_comparison_is_written_into_the_working_directory(
    sweep: Path, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare([str(sweep), *QUICK, "--html"]) == 0

    assert capsys.readouterr().out.splitlines()[-1] == "page: report.html"
    assert "0-good" in (workplace / "report.html").read_text()
    names = {path.name for path in (workplace / "plots").iterdir()}
    assert {"leaderboard.svg", "pairwise.png", "flips.csv"} <= names


@pytest.mark.parametrize(
    ("given", "page", "plots"),
    [
        (".", "report.html", "plots"),
        ("new/folder", "new/folder/report.html", "new/folder/plots"),
        ("other.html", "other.html", "other-plots"),
    ],
)
def test_the_plots_are_beside_the_page(workplace: Path, given: str, page: str, plots: str) -> None:
    place = report_paths(Path(given), option="--html", force=False)

    assert (place.page, place.plots) == (Path(page), Path(plots))


def test_with_json_standard_output_is_the_numbers_alone(
    sweep: Path, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare([str(sweep), *QUICK, "--json", "--html"]) == 0

    said = capsys.readouterr()
    assert len(json.loads(said.out)["runs"]) == 2
    assert said.err == "page: report.html\n"


@pytest.mark.parametrize("found", ["report.html", "plots/reliability.png"])
def test_what_is_there_is_replaced_only_by_force(sweep: Path, workplace: Path, found: str) -> None:
    place = workplace / found
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")

    with pytest.raises(InputError, match=rf"{found}: exists; give another place, or --force"):
        compare([str(sweep), *QUICK, "--html"])
    assert place.read_text() == "mine"
    assert [path for path in workplace.rglob("*") if path.is_file() and path != place] == [
        path for path in sweep.rglob("*") if path.is_file()
    ]


def test_force_takes_away_the_plots_of_the_earlier_page_and_nothing_else(
    sweep: Path, workplace: Path
) -> None:
    assert compare([str(sweep), *QUICK, "--html"]) == 0
    (workplace / "plots" / "mine.txt").write_text("mine")
    (workplace / "report.html").write_text("mine")

    assert report([str(sweep / "0-good"), *QUICK, "--output", ".", "--force"]) == 0

    names = {path.name for path in (workplace / "plots").iterdir()}
    assert names.isdisjoint({"pairwise.svg", "flips.csv", "differences.csv"})
    assert {"mine.txt", "leaderboard.svg"} <= names
    assert (workplace / "report.html").read_text().startswith("<!doctype html>")


def test_a_run_after_html_is_not_taken_for_the_place(sweep: Path, workplace: Path) -> None:
    runs = [str(path) for path in sorted(sweep.iterdir())]

    with pytest.raises(InputError, match=r"--html .*0-good: is a run, no place for this page"):
        compare(["--html", *runs])


@pytest.mark.parametrize(
    ("kind", "said"), [("folder", "x.html: is a folder"), ("file", "x-plots: is a file")]
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is(
    sweep: Path, workplace: Path, kind: str, said: str
) -> None:
    if kind == "folder":
        (workplace / "x.html").mkdir()
    else:
        (workplace / "x-plots").write_text("")

    with pytest.raises(InputError, match=said):
        compare([str(sweep), *QUICK, "--html", "x.html", "--force"])


def test_a_folder_that_cannot_be_made_is_one_line(sweep: Path, workplace: Path) -> None:
    (workplace / "file").write_text("")

    done = jevexp("compare", str(sweep), *QUICK, "--html", "file/below", cwd=workplace)

    assert done.status == 2
    assert done.err.startswith("error: file: is no folder")
    assert len(done.err.splitlines()) == 1


def test_a_report_is_about_one_run(sweep: Path) -> None:
    with pytest.raises(InputError, match=r"2 runs; a report is of one"):
        report([str(sweep)])


def test_a_run_that_has_not_ended_keeps_its_directory_to_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_killed_run(tmp_path / "run", TASKS, attempted=5).path
    before = sorted(run.rglob("*"))

    with pytest.raises(InputError, match=r"run: has not ended.*give --output"):
        report([str(run), *QUICK])
    assert sorted(run.rglob("*")) == before

    assert report([str(run), *QUICK, "--output", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out == f"page: {tmp_path / 'page.html'}\n"


@pytest.mark.parametrize("name", ["report.html", "plots", "plots/reliability.svg"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_strangers_directory_leads_a_report_nowhere(sweep: Path, name: str, kind: str) -> None:
    run = sweep / "0-good"
    victim = sweep / "victim"
    victim.mkdir()
    (victim / "file").write_text("precious")
    (run / name).parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(run / name)
    else:
        (run / name).symlink_to(victim if name == "plots" else victim / "file")

    with pytest.raises(InputError) as caught:
        report([str(run), *QUICK, "--force"])

    assert str(run / name) in str(caught.value)
    assert {path.name: path.read_text() for path in victim.iterdir()} == {"file": "precious"}


def test_names_that_could_be_guessed_before_are_left_alone(sweep: Path) -> None:
    run = sweep / "0-good"
    (sweep / "victim").write_text("precious")
    (run / ".report.html.new").symlink_to(sweep / "victim")
    (run / "plots").mkdir()
    os.mkfifo(run / "plots" / ".reliability.svg.new")

    assert report([str(run), *QUICK]) == 0

    assert (sweep / "victim").read_text() == "precious"
    assert (run / "plots" / "reliability.svg").stat().st_mode & 0o777 == 0o600


def test_a_run_that_is_a_link_to_another_folder_gets_no_report(sweep: Path) -> None:
    (sweep / "given").symlink_to(sweep / "0-good")

    with pytest.raises(InputError, match="is a link, and nothing is written through one"):
        report([str(sweep / "given"), *QUICK])

    assert not (sweep / "0-good" / "report.html").exists()


def test_a_persons_own_link_may_lead_to_the_folder_of_pages(sweep: Path, workplace: Path) -> None:
    (workplace / "disk").mkdir()
    (workplace / "pages").symlink_to("disk")

    assert report([str(sweep / "0-good"), *QUICK, "--output", "pages"]) == 0

    assert (workplace / "disk" / "report.html").is_file()
