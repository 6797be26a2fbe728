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
from jevexp.analysis.conditions import fields_of
from jevexp.analysis.metrics import ACCURACY, METRICS
from jevexp.analysis.plots import NAMES, plots
from jevexp.analysis.plots.drawing import WIDTH, Plot, inline_svg, level, pictures
from jevexp.analysis.plots.heatmaps import MOST_NUMBERS, family_names
from jevexp.analysis.report.numbers import FILTERS, JsonPointer
from jevexp.analysis.runs import FinishedRun
from jevexp.analysis.tables import FLIP_TABLE, MISTAKE_TABLE, write_table
from jevexp.analysis.verdicts import POWER
from jevexp.core.json import dumps, loads
from jevexp.core.task import Task, as_text
from jevexp.errors import InputError
from jevexp.untrusted.console import shortened, visible
from jevexp.untrusted.writing import Folder, make_folders

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE = "report.html"
_SUFFIXES = (".svg", ".png", ".csv")
_PACKAGE = "jevexp.analysis.report"
# More candidates than this are a table of verdicts and no sentences.
_MOST_SENTENCES = 3
# With more runs than this they are the rows of the table of identities.
_MOST_COLUMNS = 4
_MADE_WITH = ("matplotlib", "numpy", "scipy")
# Answers on the whole page; the rest is in the data.
_MOST_FLIPS = 60
_MOST_MISTAKES = 30
_FEWEST_A_SIDE = 2
_MOST_LETTERS = 6000


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
            yield from (self.plots / f"{name}{suffix}" for suffix in _SUFFIXES)

    def existing(self) -> Iterator[Path]:
        """Those of them that are there, also as links that lead nowhere."""
        return (path for path in self.files() if path.exists() or path.is_symlink())


def write_report(comparison: Comparison, runs: Sequence[FinishedRun], paths: ReportPaths) -> None:
    """Write the page, the plots with their data, and all flips; what an earlier report left goes.

    Raises InputError: a file cannot be written.
    """
    drawings = plots(comparison)
    document = render(comparison, runs, drawings, data=paths.plots.name)
    try:
        make_folders(paths.page.parent)
        with Folder.open(paths.page.parent) as folder, folder.below(paths.plots.name) as data:
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

    Raises OSError: a file cannot be written.
    """
    for suffix, data in pictures(plot).items():
        folder.replace(f"{plot.name}{suffix}", data)
    write_table(folder, f"{plot.name}.csv", plot.columns, plot.rows)


def render(
    comparison: Comparison, runs: Sequence[FinishedRun], plots: Mapping[str, Plot], *, data: str
) -> str:
    """One HTML document that needs nothing else; every number is from the comparison's JSON.

    `data` is where the plots' files are, as a person finds them from the page.
    """
    document = JsonPointer(loads(dumps(comparison.plain())))
    style, allowed = style_sheet()
    # One hash, so one set of tasks, whichever run has them.
    tasks: dict[str, Task] = next((run.tasks for run in runs if run.tasks is not None), {})
    verdicts = [
        str(difference.verdict)
        for pair in comparison.pairs
        if (difference := pair.difference(ACCURACY)) and difference.verdict
    ]
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
        answers=dict(Counter(verdicts)),
        figures=plots,
        narrow=WIDTH,
        family_names=family_names(comparison.runs),
        level=level,
        numbered=len(comparison.runs) <= MOST_NUMBERS,
        flips=_flips(document["pairs"], tasks),
        mistakes=[
            _answer(mistake, [mistake["probs"]], tasks)
            for mistake in list(document["mistakes"])[:_MOST_MISTAKES]
        ],
        with_tasks=bool(tasks),
        fields=fields_of(comparison, runs),
        turned=len(comparison.runs) > _MOST_COLUMNS,
        command=_command(comparison),
        data=data,
        made_with={"jevexp": jevexp.__version__, "Python": platform.python_version()}
        | {name: version(name) for name in _MADE_WITH},
    )


@dataclass(frozen=True, slots=True)
class Option:
    """One answer that a task allows, and what each side gives it; None for no distribution."""

    label: str
    description: str | None
    gold: bool
    shares: Sequence[JsonPointer | None]


@dataclass(frozen=True, slots=True)
class AnswerView:
    """A flip or a mistake; `task` is None where the tasks are not here.

    Of its state the first letters are shown; `left_out` counts the other ones.
    """

    place: JsonPointer
    task: Task | None
    state: str
    left_out: int
    options: Sequence[Option]


@dataclass(frozen=True, slots=True)
class FlipsView:
    """The first flips of one pair that the candidate lost and gained, and how many there are."""

    pair: JsonPointer
    lost: Sequence[AnswerView]
    gained: Sequence[AnswerView]
    n_lost: int
    n_gained: int


def _flips(pairs: JsonPointer, tasks: Mapping[str, Task]) -> Iterator[FlipsView]:
    for pair in pairs:
        most = max(_FEWEST_A_SIDE, _MOST_FLIPS // len(pairs) // 2)
        lost, gained = (
            [flip for flip in pair["flips"] if flip["right"].raw == side]
            for side in ("baseline", "candidate")
        )
        shown_lost, shown_gained = (
            [_answer(flip, [flip["baseline"], flip["candidate"]], tasks) for flip in flips[:most]]
            for flips in (lost, gained)
        )
        yield FlipsView(pair, shown_lost, shown_gained, len(lost), len(gained))


def _answer(
    place: JsonPointer, sides: Sequence[JsonPointer], tasks: Mapping[str, Task]
) -> AnswerView:
    """The answers of `sides`, distributions or null, to the task that `place` names."""
    task = tasks.get(place["task_id"].raw)
    labels = (
        task.labels if task else dict.fromkeys(label for side in sides for label in side.raw or ())
    )
    descriptions = task.question.descriptions if task else {}
    options = [
        Option(
            label,
            descriptions.get(label) or None,
            task is not None and label == task.gold,
            [side[label] if side.raw and label in side.raw else None for side in sides],
        )
        for label in labels
    ]
    state = as_text(task.state) if task else ""
    left_out = max(0, len(state) - _MOST_LETTERS)
    return AnswerView(place, task, shortened(state, _MOST_LETTERS), left_out, options)


def _command(comparison: Comparison) -> str:
    """What makes this page again."""
    options = comparison.options
    verb = "compare" if comparison.pairs else "report"
    words = ["jevexp", verb, *(run.path for run in comparison.runs)]
    words += [f"--alpha={options.alpha:g}", f"--margin={options.margin:g}"]
    words += [f"--draws={options.draws}", f"--seed={options.seed}"]
    return shlex.join([*words, "--html"] if comparison.pairs else words)


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
    environment.filters |= {"lines": shown_lines, "drawn": inline_svg}
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
    """What an expression writes: markup as it is, everything else visible; raises TypeError."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, JsonPointer):
        value = value.raw
    if value is None or isinstance(value, float):
        raise TypeError(f"{value!r} on the page without a filter")
    return visible(str(value))
