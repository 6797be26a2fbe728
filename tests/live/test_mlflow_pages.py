"""What a person sees in MLflow, in a real browser, through the links that a sweep prints."""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import browser, opened
from tests.support.cli import jevexp, start
from tests.support.mlflow_server import answers, wait_for
from tests.support.ports import free_port

__all__ = ["browser"]

pytestmark = pytest.mark.live

WORSE, BETTER = "demo · fake accuracy=0.5 · fake", "demo · fake accuracy=1.0 · fake"
COMPARISON = "comparison · demo · 2 runs"
# The first page of a cold server, on a machine with better things to do.
PATIENCE_MS = 120_000
USUAL = "http://127.0.0.1:5000"


@dataclass(frozen=True)
class Interface:
    """A running `jevexp ui`: its process, its address, and the lines that it has printed."""

    process: "subprocess.Popen[str]"
    address: str
    lines: list[str]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder in which a sweep of two runs was made, and the links that it printed, by label."""
    workplace = tmp_path_factory.mktemp("pages")
    done = jevexp(
        "-m",
        "dataset=demo",
        "backend.mode=noise",
        "backend.accuracy=0.5,1.0",
        "tracking.traces=true",
        cwd=workplace,
    )
    assert done.status == 0, done.out + done.err
    return workplace, dict(re.findall(rf"^(\w[\w ]*?)\s+({USUAL}\S+)$", done.out, re.MULTILINE))


@pytest.fixture(scope="module")
def interface(sweep: tuple[Path, dict[str, str]]) -> Iterator[Interface]:
    """MLflow's user interface on the sweep."""
    port = free_port()
    process = start("ui", "--port", str(port), cwd=sweep[0])
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if line.startswith("Ctrl-C"):
            break
    try:
        yield Interface(process, f"http://127.0.0.1:{port}", lines)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def links(
    sweep: tuple[Path, dict[str, str]], interface: Interface, browser: Browser
) -> Iterator[dict[str, str]]:
    """The links of the sweep, by label, while they lead to the running interface."""
    expect.set_options(timeout=PATIENCE_MS)
    yield {name: link.replace(USUAL, interface.address) for name, link in sweep[1].items()}
    expect.set_options(timeout=5000)


@contextmanager
def shown(browser: Browser, link: str) -> Iterator[Page]:
    # So high that nothing waits for somebody to scroll.
    with opened(browser, link, width=1800, height=3000) as watched:
        watched.page.set_default_timeout(PATIENCE_MS)
        yield watched.page


def row(page: Page, name: str) -> Locator:
    """The table row that starts with a name."""
    return page.locator("tr").filter(has=page.get_by_text(name, exact=True))


def test_a_sweep_prints_a_link_to_every_view(links: dict[str, str]) -> None:
    assert set(links) == {"runs", "charts", "compare", "per task", "traces", "report"}


def test_the_list_names_runs_by_what_they_are_with_their_tasks(
    browser: Browser, links: dict[str, str]
) -> None:
    with shown(browser, links["runs"]) as page:
        for name in (WORSE, BETTER, COMPARISON):
            expect(page.get_by_role("link", name=name)).to_be_visible()
        expect(page.get_by_text("demo (d53f5c411220)")).to_have_count(3)
        expect(page.get_by_text("3 matching runs")).to_be_visible()


def test_the_charts_have_the_metrics_of_the_runs_and_not_their_comparison(
    browser: Browser, links: dict[str, str]
) -> None:
    with shown(browser, links["charts"]) as page:
        expect(page.get_by_text("family/adequacy/accuracy")).to_be_visible()
        expect(page.get_by_text("2 matching runs")).to_be_visible()
        for section in ("family/routing", "latency", "Model metrics"):
            expect(page.get_by_text(section, exact=True)).to_be_visible()
        for name in (WORSE, BETTER):
            expect(page.get_by_text(name).first).to_be_visible()
        expect(page.get_by_text(COMPARISON)).to_have_count(0)


def test_the_compare_page_marks_what_differs(browser: Browser, links: dict[str, str]) -> None:
    with shown(browser, links["compare"]) as page:
        expect(page.get_by_text("Comparing 2 Runs from 1 Experiment")).to_be_visible()
        differing = row(page, "backend.accuracy").last
        expect(differing).to_have_class("diff-row")
        expect(differing.locator("td")).to_have_text(["0.5", "1.0"])
        expect(row(page, "backend.mode").last).not_to_have_class("diff-row")
        for name in (WORSE, BETTER):
            expect(page.get_by_text(name).first).to_be_visible()
        expect(page.get_by_text("family/adequacy/brier_mean").first).to_be_visible()


def test_the_tables_have_a_row_a_task_with_both_outcomes(
    browser: Browser, links: dict[str, str]
) -> None:
    with shown(browser, links["per task"]) as page:
        # The newest run is the first column.
        for task, newest, oldest in (
            ("demo-adequacy-1-a", "correct", "wrong"),
            ("demo-adequacy-1-b", "correct", "correct"),
        ):
            cell = page.get_by_role("gridcell", name=task, exact=True)
            cells = page.get_by_role("row").filter(has=cell).get_by_role("gridcell")
            expect(cells).to_have_text([task, newest, oldest])
        for name in (WORSE, BETTER):
            expect(page.get_by_role("link", name=name).first).to_be_visible()


def test_a_run_says_what_it_is_and_how_sure_its_numbers_are(
    browser: Browser, links: dict[str, str]
) -> None:
    with shown(browser, links["runs"]) as page:
        page.get_by_role("link", name=WORSE).click()
        expect(page.get_by_text("95 % interval").first).to_be_visible()
        page.get_by_text("Show more").first.click()
        table = page.locator("table").first
        expect(table).to_contain_text("0.500 (24 of 48), 95 % interval 0.364 to 0.636")
        expect(table).to_contain_text("declared only")
        page.get_by_role("tab", name="Artifacts").click()
        for name in ("manifest.json", "results.jsonl", "report.html", "plots"):
            expect(page.get_by_text(name, exact=True).first).to_be_visible()


def test_the_report_of_a_sweep_opens_where_its_link_leads(
    browser: Browser, links: dict[str, str]
) -> None:
    with shown(browser, links["report"]) as page:
        report = page.frame_locator("iframe").locator("body")
        expect(report).to_contain_text("Is fake accuracy=1.0 better than fake accuracy=0.5?")
        page.get_by_role("tab", name="Overview").click()
        expect(page.get_by_text("2 runs on").first).to_be_visible()
        # The leaderboard in the description leads to the runs.
        page.get_by_text("Show more").first.click()
        with page.expect_popup() as popup:
            page.get_by_role("link", name="fake accuracy=1.0 (1-demo-fake-fake)").first.click()
        expect(popup.value.get_by_role("heading", name=BETTER)).to_be_visible()


def test_the_traces_of_two_runs_stand_side_by_side(browser: Browser, links: dict[str, str]) -> None:
    with shown(browser, links["traces"]) as page:
        expect(page.get_by_text("Comparing")).to_be_visible()
        # Every task of the one run met the same task of the other.
        expect(page.get_by_text("48 of 48")).to_be_visible()
        body = page.locator("body")
        expect(body).to_contain_text("+50%")
        expect(body).to_contain_text('"task_id": "demo-routing-4-b"')
        for name in ("expected", "correct", "outcome", "p_expected"):
            expect(page.get_by_text(name, exact=True).first).to_be_visible()


# Comes last: the others need the interface.
def test_the_interface_shows_its_links_and_ends_with_ctrl_c(interface: Interface) -> None:
    base = interface.address
    compare = f"compare   {base}/#/compare-runs?"
    assert any(line.startswith(compare) for line in interface.lines), interface.lines
    wait_for(lambda: answers(base))
    interface.process.send_signal(signal.SIGINT)
    rest, _ = interface.process.communicate(timeout=120)
    assert interface.process.returncode == 0
    assert rest.strip() == "ended"
    wait_for(lambda: not answers(base))
