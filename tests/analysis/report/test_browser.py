"""The page in a real browser, in both schemes and on a phone."""

import json
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from jevexp.analysis.compare import compare
from jevexp.analysis.estimates import Options
from jevexp.analysis.plots import plots
from jevexp.analysis.report.page import render
from jevexp.core.json import dumps
from tests.analysis.made import Compared, demo_tasks, sampled
from tests.analysis.report.reading import look_up, written
from tests.support.browser import DESKTOP, PHONE, SCHEMES, opened

# The width of A4 within its margins, in pixels of style sheets.
SHEET = 718
ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "</style><svg onload=alert(3)>",
    '" onmouseover="alert(4)" x="',
    "{{7*7}}\u202e\x00",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, five_runs: Compared) -> Path:
    place = tmp_path_factory.mktemp("page") / "report.html"
    found = plots(five_runs.comparison)
    place.write_text(render(five_runs.comparison, five_runs.runs, found, data="plots"))
    return place


@pytest.fixture(scope="module")
def two_page(tmp_path_factory: pytest.TempPathFactory, two_runs: Compared) -> Path:
    """Without plots, which fit everywhere."""
    place = tmp_path_factory.mktemp("page") / "report.html"
    place.write_text(render(two_runs.comparison, two_runs.runs, {}, data="plots"))
    return place


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_opens_without_an_error_a_request_or_a_sideways_scroll(
    browser: Browser, page: Path, scheme: Literal["light", "dark"], width: int
) -> None:
    with opened(browser, page.as_uri(), scheme=scheme, width=width) as watched:
        # Also with everything unfolded.
        watched.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")

        assert watched.errors == []
        assert watched.requests == [page.as_uri()]
        assert watched.overflow == 0
        paper = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}[scheme]
        line = "getComputedStyle(document.querySelector('svg text')).fill"
        assert watched.page.evaluate(line) != paper


def test_what_the_browser_shows_is_what_the_json_says(
    browser: Browser, page: Path, five_runs: Compared
) -> None:
    document = json.loads(dumps(five_runs.comparison.plain()))
    with opened(browser, page.as_uri()) as watched:
        numbers = watched.page.eval_on_selector_all(
            "data",
            "all => all.map(d => [d.value, d.dataset.at, d.dataset.scale || 1, d.textContent])",
        )

    assert len(numbers) > 300
    for value, at, scale, text in numbers:
        exact = look_up(document, at)
        assert json.loads(value) == exact
        if said := written(text):
            assert abs(said[0] - exact * float(scale)) <= said[1] * 1.0001


def test_hostile_text_does_nothing(browser: Browser, tmp_path: Path) -> None:
    text = "".join(ATTACKS)
    tasks = [
        task.model_copy(
            update={
                "id": f"{text}{task.id}",
                "family": f"{text}{task.family}",
                "state": text,
                "question": task.question.model_copy(update={"instructions": text}),
            }
        )
        for task in demo_tasks()
    ]
    runs = [
        sampled(Path("/runs") / name, tasks, skill=skill, seed=1, name=f"{name}{text}")
        for name, skill in (("a", 0.1), ("b", 0.9))
    ]
    comparison = compare(runs, Options(draws=200))
    place = tmp_path / "report.html"
    place.write_text(render(comparison, runs, plots(comparison), data="plots"))

    with opened(browser, place.as_uri(), width=PHONE) as watched:
        for element in watched.page.query_selector_all("h1, .flip summary, svg text")[:20]:
            element.dispatch_event("mouseover")

        assert (watched.dialogs, watched.errors) == ([], [])
        assert watched.requests == [place.as_uri()]
        assert watched.overflow == 0
        assert watched.page.eval_on_selector_all("script, img", "all => all.length") == 0
        assert "{{7*7}}" in watched.page.inner_text("h1")


def test_on_paper_it_is_light_and_no_wider_than_a_sheet(browser: Browser, two_page: Path) -> None:
    with opened(browser, two_page.as_uri(), scheme="dark", width=SHEET) as watched:
        watched.page.emulate_media(media="print", color_scheme="dark")

        assert watched.overflow == 0
        paper = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(255, 255, 255)"
