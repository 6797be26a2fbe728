"""Drawings inside the page."""

import re
from collections.abc import Iterator
from importlib import resources
from xml.etree import ElementTree

import pytest

from jevexp.analysis.plots import plots
from jevexp.analysis.plots.drawing import FILLS, ROLES, ink_on, inline_svg
from tests.analysis.made import Compared

COLOR = re.compile(r"#[0-9a-f]{6}")


@pytest.fixture(scope="module")
def drawings(five_runs: Compared) -> list[ElementTree.Element]:
    return [
        ElementTree.fromstring(inline_svg(panel, f"{plot.name}-{number}-"))
        for plot in plots(five_runs.comparison).values()
        for number, panel in enumerate(plot.panels)
    ]


def every(drawings: list[ElementTree.Element]) -> Iterator[ElementTree.Element]:
    return (element for drawing in drawings for element in drawing.iter())


def test_nothing_needs_an_inline_style_or_another_file(
    drawings: list[ElementTree.Element],
) -> None:
    elements = list(every(drawings))
    assert len(elements) > 500
    assert {element.tag for element in elements}.isdisjoint({"style", "script", "image"})
    for element in elements:
        assert "style" not in element.attrib
        assert element.get("href", "#").startswith("#")


def test_ids_are_unique_on_the_page_and_lead_somewhere(
    drawings: list[ElementTree.Element],
) -> None:
    ids = [found for element in every(drawings) if (found := element.get("id"))]
    assert ids
    assert len(ids) == len(set(ids))
    used = {found[1:] for element in every(drawings) if (found := element.get("href"))}
    assert used <= set(ids)


def test_colours_follow_the_page(drawings: list[ElementTree.Element]) -> None:
    values = {value for element in every(drawings) for value in element.attrib.values()}
    fixed = {ink_on(level) for level in range(len(FILLS))} | set(FILLS)
    assert {value for value in values if COLOR.fullmatch(value)} <= fixed
    assert {"var(--ink)", "var(--baseline)", "var(--candidate)", "var(--better)"} <= values


def test_every_drawing_says_what_it_shows(drawings: list[ElementTree.Element]) -> None:
    for drawing in drawings:
        assert drawing.get("role") == "img"
        assert len(drawing.get("aria-label", "")) > 20


def test_every_role_has_a_colour_in_both_schemes() -> None:
    sheet = resources.files("jevexp.analysis.report").joinpath("style.css").read_text()
    light, dark = sheet.split("@media screen and (prefers-color-scheme: dark)")
    for color, role in ROLES.items():
        assert f"--{role}: {color};" in light
        assert f"--{role}: #" in dark
    for level, color in enumerate(FILLS):
        assert f"--heat-{level}: {color};" in light


def luminance(color: str) -> float:
    """Relative luminance; WCAG 2.2."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_in_both_schemes() -> None:
    sheet = resources.files("jevexp.analysis.report").joinpath("style.css").read_text()
    for part in sheet.split("@media screen and (prefers-color-scheme: dark)"):
        colors = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", part))
        for role in ("ink", "muted", "baseline", "candidate", "better", "worse", "equivalent",
                     "inconclusive"):  # fmt: skip
            assert contrast(colors[role], colors["paper"]) >= 4.5, role
    for level, color in enumerate(FILLS):
        assert contrast(color, ink_on(level)) >= 4.5, level
