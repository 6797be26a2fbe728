"""The picture and the pages about the program's layers show the layers that it has."""

import re
from pathlib import Path

import pytest
from tools import draw_imports

ROOT = Path(__file__).parents[1]
LAYERS = draw_imports.layers()
PACKAGES = [name for layer in LAYERS for name in layer]
PICTURE = draw_imports.PICTURE.read_text(encoding="utf-8")


def test_the_layers_hold_everything_in_the_package() -> None:
    entries = (ROOT / "src/jevexp").iterdir()
    parts = {entry.stem for entry in entries if entry.suffix == ".py" or entry.is_dir()}
    assert set(PACKAGES) == parts - {"__init__", "__main__", "__pycache__"}


def test_the_picture_has_the_layers_of_the_contract_from_the_top() -> None:
    names = re.findall(r'font-size="15" font-weight="600"[^>]*>([^<]+)<', PICTURE)
    assert names == PACKAGES
    frames = re.findall(rf'<rect [^>]*fill="{draw_imports.LAYER}"', PICTURE)
    assert len(frames) == len(LAYERS)


def test_the_picture_says_what_would_be_drawn_now() -> None:
    """The dots apart: a new import that the contract allows does not make the picture wrong."""
    now = draw_imports.draw(draw_imports.parts())
    assert _without_dots(PICTURE) == _without_dots(now), "run: make architecture"


def _without_dots(picture: str) -> list[str]:
    return [line for line in picture.splitlines() if " imports " not in line]


def test_every_import_in_the_picture_points_down() -> None:
    layer_of = {name: number for number, names in enumerate(LAYERS) for name in names}
    imports = re.findall(r"<title>(\w+) imports (\w+)</title>", PICTURE)
    assert ("cli", "run") in imports
    assert [pair for pair in imports if layer_of[pair[0]] >= layer_of[pair[1]]] == []


@pytest.mark.parametrize("name", PACKAGES)
def test_the_map_says_of_a_package_what_its_docstring_says(name: str) -> None:
    sentence = draw_imports.sentence(name)
    assert 20 < len(sentence) <= draw_imports.LINE, "nothing said, or too long to be drawn"
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    assert f"`{name}`: {sentence}" in text, "say it there as the docstring does"


def test_the_page_has_a_row_for_each_layer_in_order() -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    rows = [re.findall(r"`(\w+)`", row) for row in re.findall(r"^\| (`[^|]+) \|", page, re.M)]
    assert rows[: len(LAYERS)] == LAYERS
