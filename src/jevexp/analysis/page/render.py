"""The page itself."""

import platform
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import jevexp
from jevexp.analysis.comparison import Comparison
from jevexp.analysis.metric import POWER
from jevexp.analysis.names import METRICS
from jevexp.analysis.page.environment import make_environment, style_sheet
from jevexp.analysis.page.figures import figures_of
from jevexp.analysis.page.flips import flips_of, mistakes_of
from jevexp.analysis.page.numbers import Place
from jevexp.analysis.page.who import fields_of
from jevexp.analysis.plots.families import family_names
from jevexp.analysis.plots.heat import level
from jevexp.analysis.plots.pairwise import MOST_NUMBERS
from jevexp.analysis.plots.plot import Plot
from jevexp.analysis.runs import FinishedRun
from jevexp.core.json import dumps, loads
from jevexp.core.task import Task

# More candidates than this are a table of verdicts and no sentences.
_MOST_SENTENCES = 3
# With more runs than this they are the rows of the table of identities.
_MOST_COLUMNS = 4
_MADE_WITH = ("matplotlib", "numpy", "scipy")


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
    document = Place(loads(dumps(comparison.plain())))
    style, allowed = style_sheet()
    tasks = _tasks(runs)
    template = make_environment().get_template("page.html.j2")
    return template.render(
        style=_safe(style),
        allowed=allowed,
        doc=document,
        metrics=METRICS,
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


def _safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  the package's own style sheet


def _tasks(runs: Sequence[FinishedRun]) -> dict[str, Task]:
    """The tasks of all runs; one hash, so one set, whichever run has them."""
    return next((run.tasks for run in runs if run.tasks is not None), {})


def _answers(comparison: Comparison) -> dict[str, int]:
    """How many candidates are better, worse and so on in accuracy."""
    verdicts = [
        str(metric.verdict)
        for pair in comparison.pairs
        if (metric := pair.metric("accuracy")) and metric.verdict
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
