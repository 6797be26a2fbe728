"""The page: one HTML document that needs nothing else, made of templates, with plots beside it."""

import base64
import hashlib
import platform
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

import jevexp
from jevexp.analysis.comparison import Comparison
from jevexp.analysis.estimates import POWER
from jevexp.analysis.metrics import ACCURACY, METRICS
from jevexp.analysis.plots import NAMES, plots
from jevexp.analysis.plots.drawing import WIDTH, Plot, level
from jevexp.analysis.plots.heatmaps import MOST_NUMBERS, family_names
from jevexp.analysis.plots.pictures import drawn, inline_svg, panel_figure, pictures
from jevexp.analysis.report.answers import flips_of, mistakes_of
from jevexp.analysis.report.numbers import FILTERS, JsonPointer
from jevexp.analysis.runs import FinishedRun
from jevexp.analysis.tables import FLIP_TABLE, MISTAKE_TABLE, write_table
from jevexp.analysis.who import fields_of
from jevexp.core.json import dumps, loads
from jevexp.core.task import Task
from jevexp.errors import InputError
from jevexp.untrusted.console import visible
from jevexp.untrusted.writing import Folder, make_folders

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE = "report.html"
SUFFIXES = (".svg", ".png", ".csv")
_PACKAGE = "jevexp.analysis.report"
# More candidates than this are a table of verdicts and no sentences.
_MOST_SENTENCES = 3
# With more runs than this they are the rows of the table of identities.
_MOST_COLUMNS = 4
_MADE_WITH = ("matplotlib", "numpy", "scipy")


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """Where a page is; its plots are in a folder beside it."""

    page: Path

    @property
    def plots(self) -> Path:
        """`plots` beside report.html, `<name>-plots` beside any other page."""
        stem = self.page.stem
        return self.page.with_name("plots" if self.page.name == PAGE else f"{stem}-plots")

    def files(self) -> Iterator[Path]:
        """Every file that a report may consist of."""
        yield self.page
        yield from (self.plots / table.name for table in (FLIP_TABLE, MISTAKE_TABLE))
        for name in NAMES:
            yield from (self.plots / f"{name}{suffix}" for suffix in SUFFIXES)

    def existing(self) -> Iterator[Path]:
        """Those of them that are there, also as links that lead nowhere."""
        return (path for path in self.files() if path.exists() or path.is_symlink())


def write_report(comparison: Comparison, runs: Sequence[FinishedRun], paths: ReportPaths) -> None:
    """Write the page, the plots with their data, and all flips; what an earlier report left goes.

    Raises:
        InputError: a file cannot be written.
    """
    drawings = plots(comparison)
    document = render(comparison, runs, drawings, data=paths.plots.name)
    try:
        make_folders(paths.page.parent)
        with (
            Folder.open(paths.page.parent) as folder,
            folder.below(paths.plots.name) as data,
        ):
            old = [(folder if path == paths.page else data, path.name) for path in paths.files()]
            # Nothing is removed before everything may be.
            for there, name in [(there, name) for there, name in old if there.check(name)]:
                there.remove(name)
            for plot in drawings.values():
                write_plot(plot, data)
            table = FLIP_TABLE if comparison.pairs else MISTAKE_TABLE
            write_table(data, table.name, table.columns, table.rows(comparison))
            # Last: where the page is, everything that it speaks of is too.
            folder.replace(paths.page.name, document.encode())
    except OSError as error:
        raise InputError(f"{error.filename or paths.page}: {error.strerror}") from error


def write_plot(plot: Plot, folder: Folder) -> None:
    """Write `<name>.svg` and `.png` for papers and slides, and what they show as `.csv`.

    Raises:
        OSError: a file cannot be written.
    """
    for suffix, data in pictures(plot).items():
        folder.replace(f"{plot.name}{suffix}", data)
    write_table(folder, f"{plot.name}.csv", plot.columns, plot.rows)


def render(
    comparison: Comparison,
    runs: Sequence[FinishedRun],
    plots: Mapping[str, Plot],
    *,
    data: str,
) -> str:
    """One HTML document that needs nothing else.

    Args:
        comparison: of `runs`, whose JSON every number is taken from.
        runs: what was compared, in the same order.
        plots: by name.
        data: where the plots' files are, as a person finds them from the page.
    """
    document = JsonPointer(loads(dumps(comparison.plain())))
    style, allowed = style_sheet()
    tasks = _tasks(runs)
    template = make_environment().get_template("page.html.j2")
    return template.render(
        # The package's own style sheet.
        style=Markup(style),  # noqa: S704
        allowed=allowed,
        doc=document,
        metrics=list(METRICS.values()),
        headline=ACCURACY.name,
        power=f"{POWER:.0%}".replace("%", " %"),
        confidence=f"{100 * (1 - comparison.options.alpha):.4g} %",
        sentences=len(comparison.pairs) <= _MOST_SENTENCES,
        answers=_answers(comparison),
        figures=figures_of(plots),
        family_names=family_names(comparison.runs),
        level=level,
        numbered=len(comparison.runs) <= MOST_NUMBERS,
        flips=flips_of(document["pairs"], tasks),
        mistakes=mistakes_of(document["mistakes"], tasks),
        with_tasks=bool(tasks),
        fields=fields_of(comparison, runs),
        turned=len(comparison.runs) > _MOST_COLUMNS,
        command=_command(comparison),
        data=data,
        made_with={"jevexp": jevexp.__version__, "Python": platform.python_version()}
        | {name: version(name) for name in _MADE_WITH},
    )


def _tasks(runs: Sequence[FinishedRun]) -> dict[str, Task]:
    """The tasks of all runs; one hash, so one set, whichever run has them."""
    return next((run.tasks for run in runs if run.tasks is not None), {})


def _answers(comparison: Comparison) -> dict[str, int]:
    """How many candidates are better, worse and so on in accuracy."""
    verdicts = [
        str(difference.verdict)
        for pair in comparison.pairs
        if (difference := pair.difference(ACCURACY)) and difference.verdict
    ]
    return dict(Counter(verdicts))


def _command(comparison: Comparison) -> str:
    """What makes this page again."""
    options = comparison.options
    verb = "compare" if comparison.pairs else "report"
    words = ["jevexp", verb, *(run.path for run in comparison.runs)]
    words += [f"--alpha={options.alpha:g}", f"--margin={options.margin:g}"]
    words += [f"--draws={options.draws}", f"--seed={options.seed}"]
    return shlex.join([*words, "--html"] if comparison.pairs else words)


@dataclass(frozen=True, slots=True)
class PanelView:
    """One picture; a wide one gets a box that scrolls on a narrow screen."""

    key: str
    title: str
    svg: Markup
    wide: bool


@dataclass(frozen=True, slots=True)
class FigureView:
    """One plot."""

    name: str
    title: str
    note: str | None
    panels: Sequence[PanelView]


def figures_of(plots: Mapping[str, Plot]) -> dict[str, FigureView]:
    """Draw them."""
    with drawn():
        return {name: _figure(plot) for name, plot in plots.items()}


def _figure(plot: Plot) -> FigureView:
    panels = [
        PanelView(
            panel.key,
            panel.title,
            # Built by a serializer of XML, which escapes every text.
            Markup(  # noqa: S704
                inline_svg(panel_figure(panel), alt=panel.alt, prefix=f"{plot.name}-{number}-")
            ),
            panel.width > WIDTH,
        )
        for number, panel in enumerate(plot.panels)
    ]
    return FigureView(plot.name, plot.title, plot.note, panels)


@cache
def make_environment() -> "Environment":
    """Every value is escaped, every hidden character is shown, every missing name is an error.

    There is one for all pages: reading the templates takes longer than filling them in.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= FILTERS
    environment.filters["lines"] = shown_lines
    return environment


def style_sheet() -> tuple[str, str]:
    """The style sheet, and the source expression that allows it in a content security policy."""
    text = resources.files(_PACKAGE).joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return text, f"'sha256-{digest}'"


def shown_lines(text: str) -> Any:
    """Text of several lines, whose ends and tabs stay what they are."""
    return escape("\n".join(map(visible, text.split("\n"))))


def _shown(value: Any) -> Any:
    """What an expression writes: markup as it is, everything else visible.

    Raises:
        TypeError: nothing, or a number that no filter gave its place and format.
    """
    if isinstance(value, Markup):
        return value
    if isinstance(value, JsonPointer):
        value = value.raw
    if value is None or isinstance(value, float):
        raise TypeError(f"{value!r} on the page without a filter")
    return visible(str(value))
