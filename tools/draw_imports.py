"""`make architecture`: draws the layers of the program and who imports whom, as an SVG.

The layers are those of import-linter's contract in pyproject.toml, the sentences are the first
lines of the packages' docstrings, and the dots are the imports that stand in the code. Nothing in
the picture is written by hand, so that drawing it again shows whether it is still true.
"""

import ast
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/architecture.svg"
PACKAGE = "jevexp"
# Libraries with a contract of their own; the picture shows where each is imported.
LIBRARIES = {
    "hydra": "Hydra",
    "mlflow": "MLflow",
    "httpx": "HTTP",
    "sqlalchemy": "SQL",
}

INK, MUTED, RULE, PAPER = "#1a1d21", "#5b636d", "#c9d0d8", "#ffffff"
LAYER, DOT, DIAGONAL, TAG = "#f4f6f9", "#2f5d8a", "#dde3ea", "#e6edf5"
MARGIN, HEAD, ROW, GAP = 24, 132, 54, 8
BOX, CELL = 660, 34
# Characters of a sentence that stay inside the box.
LINE = 88


@dataclass(frozen=True, slots=True)
class Part:
    """A package, or a module beside the packages, and what it is in one sentence.

    `layer` counts from the top; `imports` are the names of other parts; `libraries` are those of
    `LIBRARIES` that it imports.
    """

    name: str
    layer: int
    sentence: str
    imports: frozenset[str]
    libraries: tuple[str, ...]


def layers() -> list[list[str]]:
    """The layers from the top, without the package's own name; what shares one stands together."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    of_layers = [
        contract
        for contract in contracts["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    return [
        [name.strip().removeprefix(f"{PACKAGE}.") for name in layer.split("|")]
        for layer in of_layers[0]["layers"]
    ]


def sentence(name: str) -> str:
    """The first line of a part's docstring."""
    package = ROOT / "src" / PACKAGE / name
    file = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def parts() -> list[Part]:
    """Every part of the program, from the top layer to the lowest."""
    graph = grimp.build_graph(PACKAGE, include_external_packages=True, cache_dir=None)
    imported: dict[str, set[str]] = {}
    for module in graph.modules:
        importer = _part(module)
        imported.setdefault(importer, set()).update(
            _part(target) for target in graph.find_modules_directly_imported_by(module)
        )
    return [
        Part(
            name,
            number,
            sentence(name),
            frozenset(imported[name] - {name}),
            tuple(title for library, title in LIBRARIES.items() if library in imported[name]),
        )
        for number, names in enumerate(layers())
        for name in names
    ]


def _part(module: str) -> str:
    own, _, rest = module.partition(".")
    return rest.partition(".")[0] if own == PACKAGE else own


def draw(parts: Sequence[Part]) -> str:
    """The picture as SVG."""
    width = MARGIN + BOX + GAP + CELL * len(parts) + MARGIN
    tops = _tops(parts)
    height = tops[-1] + ROW + 50
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, Helvetica, Arial, sans-serif">',
        "<title>The layers of jevexp, and who imports whom</title>",
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
        *_heading(parts),
        *_boxes(parts, tops),
        *_matrix(parts, tops),
        *_legend(tops[-1] + ROW + 28),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _tops(parts: Sequence[Part]) -> list[int]:
    """Where each part's row begins; rows of one layer touch."""
    tops = [HEAD]
    for above, below in pairwise(parts):
        tops.append(tops[-1] + ROW + (GAP if above.layer != below.layer else 0))
    return tops


def _heading(parts: Sequence[Part]) -> Iterator[str]:
    yield _text(MARGIN, 44, "The layers of jevexp", size=22, weight=600)
    yield _text(MARGIN, 70, "Whoever stands higher may import what stands lower.", fill=MUTED)
    yield _text(MARGIN, 90, "Two in one frame do not import each other.", fill=MUTED)
    for column, part in enumerate(parts):
        x = _column(column)
        yield (
            f'<text x="{x}" y="{HEAD - 12}" font-size="13" fill="{INK}" '
            f'transform="rotate(-60 {x} {HEAD - 12})">{escape(part.name)}</text>'
        )


def _boxes(parts: Sequence[Part], tops: Sequence[int]) -> Iterator[str]:
    for layer in sorted({part.layer for part in parts}):
        rows = [row for row, part in enumerate(parts) if part.layer == layer]
        yield (
            f'<rect x="{MARGIN}" y="{tops[rows[0]]}" width="{BOX}" height="{ROW * len(rows)}" '
            f'rx="6" fill="{LAYER}" stroke="{RULE}"/>'
        )
    for part, top in zip(parts, tops, strict=True):
        yield _text(MARGIN + 14, top + 22, part.name, size=15, weight=600)
        right = MARGIN + BOX - 10
        for library in reversed(part.libraries):
            width = 14 + 8 * len(library)
            right -= width
            yield (
                f'<rect x="{right}" y="{top + 7}" width="{width}" height="19" rx="9" fill="{TAG}"/>'
            )
            yield _text(right + width / 2, top + 21, library, size=12, fill=DOT, anchor="middle")
            right -= 6
        text = textwrap.shorten(part.sentence, LINE, placeholder=" …")
        yield _text(MARGIN + 14, top + 42, text, size=13, fill=MUTED)


def _matrix(parts: Sequence[Part], tops: Sequence[int]) -> Iterator[str]:
    bottom = tops[-1] + ROW
    for column in range(len(parts)):
        x = _column(column)
        yield f'<line x1="{x}" y1="{HEAD}" x2="{x}" y2="{bottom}" stroke="{RULE}"/>'
    for row, (part, top) in enumerate(zip(parts, tops, strict=True)):
        y = top + ROW / 2
        left, right = _column(0) - CELL / 2, _column(len(parts) - 1) + CELL / 2
        yield f'<line x1="{left}" y1="{y}" x2="{right}" y2="{y}" stroke="{RULE}"/>'
        yield (
            f'<rect x="{_column(row) - 9}" y="{y - 9}" width="18" height="18" rx="4" '
            f'fill="{DIAGONAL}" stroke="{RULE}"/>'
        )
        for column, other in enumerate(parts):
            if other.name in part.imports:
                yield (
                    f'<circle cx="{_column(column)}" cy="{y}" r="7" fill="{DOT}">'
                    f"<title>{part.name} imports {other.name}</title></circle>"
                )


def _legend(y: int) -> Iterator[str]:
    x = MARGIN + BOX + GAP
    yield f'<circle cx="{x + 9}" cy="{y - 4}" r="7" fill="{DOT}"/>'
    yield _text(x + 24, y, "the row imports the column", size=13, fill=MUTED)
    yield (
        f'<rect x="{x + 230}" y="{y - 13}" width="18" height="18" rx="4" fill="{DIAGONAL}" '
        f'stroke="{RULE}"/>'
    )
    yield _text(x + 256, y, "itself; left of it stays empty", size=13, fill=MUTED)
    yield _text(MARGIN, y, "At the right end of a box: where a library is used.", fill=MUTED)


def _column(column: int) -> int:
    return MARGIN + BOX + GAP + CELL * column + CELL // 2


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 13,
    weight: int = 400,
    fill: str = INK,
    anchor: str = "start",
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(parts()), encoding="utf-8")
    print(PICTURE.relative_to(ROOT))
