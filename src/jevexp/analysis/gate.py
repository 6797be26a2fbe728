"""Whether a run may replace its baseline: rules that intervals decide, never point values."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from jevexp.analysis.comparison import Comparison, PairResult
from jevexp.analysis.estimates import Difference
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
    tested at alpha over the number of rules (Bonferroni).

    Args:
        comparison: baseline and candidate, at alpha.
        strict: the same at alpha over the number of rules.
        limits: what is allowed.
    """
    (pair,), (strict_pair,) = comparison.pairs, strict.pairs
    # The level of a bound that makes it fail, and of one that lets it pass.
    alphas = Interval(strict.options.alpha, comparison.options.alpha)
    rulings = [
        *_conditions(comparison, limits),
        *(
            _drop(METRICS[name], limit, pair, strict_pair, alphas)
            for name, limit in limits.max_drop.items()
        ),
    ]
    if limits.max_latency_ratio is not None:
        rulings.append(_latency(pair, strict_pair, limits, alphas))
    outcomes = {ruling.outcome for ruling in rulings}
    for outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE):
        if outcome in outcomes:
            return GateResult(outcome, rulings)
    return GateResult(Outcome.PASS, rulings)


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
        return Ruling(
            rule, Outcome.INCONCLUSIVE, f"{metric.name} is not known for both sides", limit=limit
        )
    bounds = _Bounds(
        found=_worsening(metric, difference),
        low=_worsening_interval(metric, strict.equivalence).low,
        high=_worsening_interval(metric, difference.equivalence).high,
    )
    outcome = bounds.outcome(limit, difference.clusters)
    needed = None
    if outcome is Outcome.INCONCLUSIVE:
        needed = bounds.needed(limit, difference.n, alphas)
    reason = {
        Outcome.FAIL: f"worse by {bounds.found:.3f}, at least {bounds.low:.3f}: above the limit",
        Outcome.PASS: f"worse by {bounds.found:.3f}, at most {bounds.high:.3f}: below the limit",
        Outcome.INCONCLUSIVE: f"worse by {bounds.found:.3f}, between {bounds.low:.3f} and "
        f"{bounds.high:.3f}: {_undecided(needed, difference.clusters)}",
    }[outcome]
    return Ruling(
        rule, outcome, reason, limit, bounds.found, bounds.low, bounds.high, difference.n, needed
    )


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How much worse it is, and the one-sided bounds: `low` for a failure, `high` for a pass."""

    found: float
    low: float
    high: float

    def outcome(self, limit: float, clusters: int) -> Outcome:
        if clusters >= FEWEST_FOR_EQUIVALENCE:
            if self.low > limit:
                return Outcome.FAIL
            if self.high < limit:
                return Outcome.PASS
        return Outcome.INCONCLUSIVE

    def needed(self, limit: float, n: int, alphas: Interval) -> int | None:
        """About how many tasks would decide, were the difference the one that was found."""
        below = self.found < limit
        half = self.high - self.found if below else self.found - self.low
        alpha = alphas.high if below else alphas.low
        return tasks_for_margin(n, self.found - limit, half, alpha=alpha)


def _worsening(metric: Metric, difference: Difference) -> float:
    """How much worse the candidate is."""
    return 0.0 - difference.delta if metric.higher_is_better else difference.delta


def _worsening_interval(metric: Metric, interval: Interval) -> Interval:
    return Interval(-interval.high, -interval.low) if metric.higher_is_better else interval


def _undecided(needed: int | None, clusters: int) -> str:
    if clusters < FEWEST_FOR_EQUIVALENCE:
        return f"{clusters} independent tasks are too few to decide anything"
    if needed is None:
        return "what was found is the limit, and no number of tasks would decide"
    return f"about {needed} tasks like these would decide"


def _latency(pair: PairResult, strict: PairResult, limits: Limits, alphas: Interval) -> Ruling:
    limit = limits.max_latency_ratio or math.inf
    rule = f"max-latency-ratio {limit:g}"
    latency, strict_latency = pair.latency, strict.latency
    if not latency or not strict_latency or not latency.one_sided or not strict_latency.one_sided:
        return Ruling(rule, Outcome.INCONCLUSIVE, "no ratio of latencies here", limit=limit)
    ratio, low, high = latency.ratio, strict_latency.one_sided.low, latency.one_sided.high
    if latency.warnings and not limits.trust_latency:
        reason = f"the seconds are not comparable: {latency.warnings[0]}"
        return Ruling(rule, Outcome.INCONCLUSIVE, reason, limit, ratio, low, high, latency.n)
    # Ratios are judged where their intervals are symmetric.
    bounds = _Bounds(*map(math.log, (ratio, low, high)))
    outcome = bounds.outcome(math.log(limit), pair.clusters)
    needed = None
    if outcome is Outcome.INCONCLUSIVE:
        needed = bounds.needed(math.log(limit), latency.n, alphas)
    reason = {
        Outcome.FAIL: f"takes {ratio:.2f} times as long, at least {low:.2f}: above the limit",
        Outcome.PASS: f"takes {ratio:.2f} times as long, at most {high:.2f}: below the limit",
        Outcome.INCONCLUSIVE: f"takes {ratio:.2f} times as long, between {low:.2f} and "
        f"{high:.2f}: {_undecided(needed, pair.clusters)}",
    }[outcome]
    return Ruling(rule, outcome, reason, limit, ratio, low, high, latency.n, needed)
