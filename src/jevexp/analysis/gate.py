"""Whether a run may replace its baseline: rules that intervals decide, never point values."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from jevexp.analysis.comparison import Comparison, PairResult
from jevexp.analysis.intervals import Interval
from jevexp.analysis.metrics import METRICS, Metric
from jevexp.analysis.verdicts import FEWEST_FOR_EQUIVALENCE, tasks_for_margin


class Outcome(StrEnum):
    """What a rule, or the whole gate, comes to."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a candidate may do at most.

    `max_drop` says by metric how much worse it may be, `max_latency_ratio` how many times as long
    it may take; null is no limit. `min_coverage` is the least share of the requested tasks that
    either side attempted.
    """

    max_drop: Mapping[str, float] = field(default_factory=dict)
    max_latency_ratio: float | None = None
    min_coverage: float = 1.0
    allow_contradicted: bool = False
    trust_latency: bool = False

    @property
    def sampled(self) -> int:
        """How many of the rules an interval decides."""
        return len(self.max_drop) + (self.max_latency_ratio is not None)


@dataclass(frozen=True, slots=True)
class Ruling:
    """One rule and what it comes to.

    `found` is how much worse the candidate is (for a ratio how many times as long it takes), `high`
    the one-sided bound that has to be below `limit` for a pass, `low` the one that has to be above
    it for a failure. `tasks_needed` is about how many tasks would decide it.
    """

    rule: str
    outcome: Outcome
    reason: str
    limit: float | None = None
    found: float | None = None
    low: float | None = None
    high: float | None = None
    tasks: int | None = None
    tasks_needed: int | None = None


@dataclass(frozen=True, slots=True)
class GateResult:
    """All rulings, and what they come to together."""

    outcome: Outcome
    rulings: list[Ruling]


def judge(comparison: Comparison, strict: Comparison, limits: Limits) -> GateResult:
    """Hold the one candidate of a comparison to its limits.

    It passes when every rule does. Each is tested at the full level: a candidate that breaks any
    limit passes with a chance of at most alpha, however many limits there are, because it has to
    get past every one (an intersection-union test: Berger (1982), Technometrics 24(4)). It fails
    when any rule does, and there more rules do mean more chances of a false alarm: failures are
    tested at alpha over the number of rules (Bonferroni), as they are in `strict`.
    """
    (pair,), (strict_pair,) = comparison.pairs, strict.pairs
    # The level of a bound that makes it fail, and of one that lets it pass.
    alphas = Interval(strict.options.alpha, comparison.options.alpha)
    rulings = list(_conditions(comparison, limits))
    for name, limit in limits.max_drop.items():
        rulings.append(_drop(METRICS[name], limit, pair, strict_pair, alphas))
    if limits.max_latency_ratio is not None:
        rulings.append(_latency(pair, strict_pair, limits, alphas))
    outcomes = {ruling.outcome for ruling in rulings}
    worst_first = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)
    return GateResult(next(outcome for outcome in worst_first if outcome in outcomes), rulings)


def _conditions(comparison: Comparison, limits: Limits) -> Iterator[Ruling]:
    """Whether both sides can be judged at all: enough attempted, and by whom they claim."""
    baseline, candidate = comparison.runs
    for side, run, otherwise in (
        ("baseline", baseline, Outcome.INCONCLUSIVE),
        ("candidate", candidate, Outcome.FAIL),
    ):
        enough = run.coverage >= limits.min_coverage
        reason = f"the {side} attempted {run.attempted} of {run.requested} tasks"
        yield Ruling(
            f"coverage of the {side}",
            Outcome.PASS if enough else otherwise,
            reason if enough else f"{reason}, less than a share of {limits.min_coverage:g}",
            limit=limits.min_coverage,
            found=run.coverage,
        )
        contradicted = run.identity == "contradicted" and not limits.allow_contradicted
        identity = (run.identity or "unknown").replace("_", " ")
        yield Ruling(
            f"identity of the {side}",
            otherwise if contradicted else Outcome.PASS,
            f"the identity of the {side} is {identity}",
        )


def _drop(
    metric: Metric, limit: float, pair: PairResult, strict_pair: PairResult, alphas: Interval
) -> Ruling:
    rule = f"max-drop {metric.name}={limit:g}"
    difference, strict = pair.difference(metric), strict_pair.difference(metric)
    if not difference or not strict or not difference.equivalence or not strict.equivalence:
        reason = f"{metric.name} is not known for both sides"
        return Ruling(rule, Outcome.INCONCLUSIVE, reason, limit=limit)
    bounds = (difference.delta, strict.equivalence.low, difference.equivalence.high)
    if metric.higher_is_better:
        bounds = (0 - difference.delta, -strict.equivalence.high, -difference.equivalence.low)
    tasks, clusters = difference.n, difference.clusters
    outcome, needed = _outcome(bounds, limit, tasks, clusters, alphas)
    texts = [f"{bound:.3f}" for bound in bounds]
    reason = f"worse by {_reason(outcome, texts, clusters, needed)}"
    return Ruling(rule, outcome, reason, limit, *bounds, tasks, needed)


def _latency(pair: PairResult, strict: PairResult, limits: Limits, alphas: Interval) -> Ruling:
    limit = limits.max_latency_ratio or math.inf
    rule = f"max-latency-ratio {limit:g}"
    latency, strict_latency = pair.latency, strict.latency
    if not latency or not strict_latency or not latency.one_sided or not strict_latency.one_sided:
        return Ruling(rule, Outcome.INCONCLUSIVE, "no ratio of latencies here", limit=limit)
    bounds = (latency.ratio, strict_latency.one_sided.low, latency.one_sided.high)
    if latency.warnings and not limits.trust_latency:
        reason = f"the seconds are not comparable: {latency.warnings[0]}"
        return Ruling(rule, Outcome.INCONCLUSIVE, reason, limit, *bounds, latency.n)
    # Ratios are judged where their intervals are symmetric.
    ratio, low, high = map(math.log, bounds)
    outcome, needed = _outcome(
        (ratio, low, high), math.log(limit), latency.n, pair.clusters, alphas
    )
    ratio_text, *texts = (f"{bound:.2f}" for bound in bounds)
    texts = [f"{ratio_text} times as long", *texts]
    reason = f"takes {_reason(outcome, texts, pair.clusters, needed)}"
    return Ruling(rule, outcome, reason, limit, *bounds, latency.n, needed)


def _outcome(
    bounds: tuple[float, float, float], limit: float, tasks: int, clusters: int, alphas: Interval
) -> tuple[Outcome, int | None]:
    """What the bounds decide; undecided, about how many tasks would, were the difference `found`.

    The bounds are what was found, the one for a failure and the one for a pass.
    """
    found, low, high = bounds
    if clusters >= FEWEST_FOR_EQUIVALENCE and low > limit:
        return Outcome.FAIL, None
    if clusters >= FEWEST_FOR_EQUIVALENCE and high < limit:
        return Outcome.PASS, None
    half, alpha = (high - found, alphas.high) if found < limit else (found - low, alphas.low)
    return Outcome.INCONCLUSIVE, tasks_for_margin(tasks, found - limit, half, alpha=alpha)


def _reason(outcome: Outcome, texts: Sequence[str], clusters: int, needed: int | None) -> str:
    found, low, high = texts
    if outcome is Outcome.FAIL:
        return f"{found}, at least {low}: above the limit"
    if outcome is Outcome.PASS:
        return f"{found}, at most {high}: below the limit"
    if clusters < FEWEST_FOR_EQUIVALENCE:
        undecided = f"{clusters} independent tasks are too few to decide anything"
    elif needed is None:
        undecided = "what was found is the limit, and no number of tasks would decide"
    else:
        undecided = f"about {needed} tasks like these would decide"
    return f"{found}, between {low} and {high}: {undecided}"
