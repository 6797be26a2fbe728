"""`jevexp gate RUN --baseline R`: a comparison that decides in CI: exit 0, 1 or 3."""

import argparse
import difflib
import math
from collections.abc import Sequence
from dataclasses import asdict, replace

from rich.text import Text

from jevexp.analysis.compare import compare
from jevexp.analysis.estimates import Options
from jevexp.analysis.gate import Limits, Outcome, judge
from jevexp.analysis.metrics import with_verdicts
from jevexp.cli.arguments import add_runs, add_statistics, number, read_chosen
from jevexp.cli.console import make_console, make_parser, print_json
from jevexp.errors import InputError

STATUS = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.INCONCLUSIVE: 3}
_STYLE = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.INCONCLUSIVE: "yellow"}


def main(argv: Sequence[str]) -> int:
    """Judge one run; 0 where every rule passes, 1 where one fails, 3 where one is undecided.

    Raises InputError: there is no rule, or a bad one; or not one candidate and one baseline.
    """
    arguments = _parser().parse_args(argv)
    limits = _limits(arguments)
    if arguments.baseline is None:
        raise InputError("--baseline: missing; name the run that this one is compared to")
    runs = read_chosen(arguments)
    if len(runs) != 2:
        raise InputError(
            f"a gate judges one run against its baseline; found {len(runs) - 1} beside the baseline"
        )
    options = Options(alpha=arguments.alpha, draws=arguments.draws, seed=arguments.seed)
    comparison = strict = compare(runs, options)
    if limits.sampled > 1:
        strict = compare(runs, replace(options, alpha=options.alpha / limits.sampled))
    result = judge(comparison, strict, limits)
    status = STATUS[result.outcome]
    if arguments.json:
        print_json(
            {
                "exit_status": status,
                "baseline": comparison.runs[0].path,
                "candidate": comparison.runs[1].path,
                "options": asdict(options),
                **asdict(result),
            }
        )
        return status
    console = make_console()
    for ruling in result.rulings:
        outcome = (f"{ruling.outcome.value:<13}", _STYLE[ruling.outcome])
        console.print(Text.assemble(outcome, f"{ruling.rule}: {ruling.reason}"))
    verdict = (result.outcome.value, _STYLE[result.outcome])
    console.print(Text.assemble(("gate: ", "bold"), verdict))
    return status


def _parser() -> argparse.ArgumentParser:
    parser = make_parser(
        "gate",
        "Hold one run to limits against a baseline. Exit status 0: every rule passes; 1: one "
        "fails; 3: one is inconclusive, and none fails.",
    )
    add_runs(parser)
    parser.add_argument(
        "--max-drop",
        action="append",
        default=[],
        metavar="METRIC=LIMIT",
        help=f"how much worse it may be in {' or '.join(_limited())}; may be given for each",
    )
    parser.add_argument(
        "--max-latency-ratio",
        type=number("above 0", lambda value: 0 < value < math.inf),
        metavar="RATIO",
        help="how many times as long it may take",
    )
    parser.add_argument(
        "--min-coverage",
        type=number("from 0 to 1", lambda value: 0 <= value <= 1),
        default=1.0,
        metavar="SHARE",
        help="the least share of tasks that both sides must have attempted (default: all)",
    )
    for name, description in (
        ("--allow-contradicted", "do not fail a run whose identity is contradicted"),
        ("--trust-latency", "decide about latencies although the conditions differ"),
        ("--json", "print the rulings as JSON"),
    ):
        parser.add_argument(name, action="store_true", help=description)
    add_statistics(parser)
    return parser


def _limits(arguments: argparse.Namespace) -> Limits:
    """The rules on the command line; raises InputError: there is none, or a bad one."""
    drops: dict[str, float] = {}
    for rule in arguments.max_drop:
        name, _, text = rule.partition("=")
        if name not in _limited():
            raise InputError(f"--max-drop: no such metric: {name!r}; {_hint(name)}")
        if name in drops:
            raise InputError(f"--max-drop: {name} is given twice; one limit a metric")
        try:
            drops[name] = float(text)
        except ValueError:
            drops[name] = math.nan
        if not 0 <= drops[name] < math.inf:
            raise InputError(
                f"--max-drop: {name}: expected a number from 0 such as {name}=0.02, found {text!r}"
            )
    limits = Limits(
        drops,
        arguments.max_latency_ratio,
        arguments.min_coverage,
        arguments.allow_contradicted,
        arguments.trust_latency,
    )
    if not limits.sampled:
        raise InputError("no rule: give --max-drop METRIC=LIMIT or --max-latency-ratio RATIO")
    return limits


def _limited() -> list[str]:
    """The metrics that may be limited."""
    return [metric.name for metric in with_verdicts()]


def _hint(name: str) -> str:
    """The metric that was meant, also by a part of its name; else all of them."""
    names = _limited()
    near = [known for known in names if name in known.split("_")]
    near += difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
