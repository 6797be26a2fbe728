"""Gates: what passes, what fails, and what nobody can tell yet."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jevexp.analysis.compare import compare
from jevexp.analysis.estimates import Options, Sums, mean_columns, share_difference
from jevexp.analysis.gate import GateResult, Limits, Outcome, Ruling, judge
from jevexp.analysis.intervals import Resampling
from jevexp.analysis.runs import FinishedRun, read_run
from tests.analysis.made import counts, finished, sampled
from tests.support.runs import make_run, noul_tasks

TASKS = noul_tasks(200)
IDS = [task.id for task in TASKS]
LATER = {"started": "2026-03-01T11:00:00.000Z", "finished": "2026-03-01T11:00:30.000Z"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FinishedRun]:
    """A baseline with 20 errors, its twin, one that is 2 points worse and one that is 30."""
    folder = tmp_path_factory.mktemp("gate")
    return {
        "baseline": finished(folder / "baseline", TASKS, IDS[:20]),
        "twin": finished(folder / "twin", TASKS, IDS[:20], **LATER),
        "close": finished(folder / "close", TASKS, IDS[:24], **LATER),
        "bad": finished(folder / "bad", TASKS, IDS[:80], **LATER),
    }


def gated(
    runs: dict[str, FinishedRun], candidate: str | FinishedRun, limits: Limits, alpha: float = 0.05
) -> GateResult:
    pair = [runs["baseline"], runs[candidate] if isinstance(candidate, str) else candidate]
    comparison = compare(pair, Options(alpha=alpha, draws=500))
    strict = compare(pair, Options(alpha=alpha / max(1, limits.sampled), draws=500))
    return judge(comparison, strict, limits)


def ruling(result: GateResult, rule: str) -> Ruling:
    (found,) = [one for one in result.rulings if one.rule.startswith(rule)]
    return found


def test_the_same_answers_pass_where_the_margin_is_wide_enough(
    runs: dict[str, FinishedRun],
) -> None:
    assert gated(runs, "twin", Limits({"accuracy": 0.05})).outcome == Outcome.PASS


def test_a_clear_drop_fails(runs: dict[str, FinishedRun]) -> None:
    result = gated(runs, "bad", Limits({"accuracy": 0.05}))

    assert result.outcome == Outcome.FAIL
    found = ruling(result, "max-drop accuracy")
    assert found.found == pytest.approx(0.3)
    assert found.low is not None
    assert found.low > 0.05


def test_a_point_value_below_the_limit_is_no_pass(runs: dict[str, FinishedRun]) -> None:
    result = gated(runs, "close", Limits({"accuracy": 0.03}))
    found = ruling(result, "max-drop accuracy")

    assert result.outcome == Outcome.INCONCLUSIVE
    assert found.found == pytest.approx(0.02)
    assert found.high is not None
    assert found.high > 0.03
    assert found.tasks_needed is not None
    assert found.tasks_needed > 200


def test_a_point_value_above_the_limit_is_no_failure(runs: dict[str, FinishedRun]) -> None:
    result = gated(runs, "close", Limits({"accuracy": 0.015}))

    assert result.outcome == Outcome.INCONCLUSIVE


def test_one_failing_rule_fails_the_gate_and_one_undecided_rule_leaves_it_open(
    runs: dict[str, FinishedRun],
) -> None:
    both = gated(runs, "bad", Limits({"accuracy": 0.05, "ordinal_mae": 0.1}))
    unknown = gated(runs, "twin", Limits({"accuracy": 0.05, "ordinal_mae": 0.1}))

    assert both.outcome == Outcome.FAIL
    assert ruling(both, "max-drop ordinal_mae").outcome == Outcome.INCONCLUSIVE
    assert unknown.outcome == Outcome.INCONCLUSIVE


def test_a_higher_brier_score_is_a_drop(runs: dict[str, FinishedRun]) -> None:
    found = ruling(gated(runs, "bad", Limits({"brier_mean": 0.1})), "max-drop brier_mean")

    assert found.outcome == Outcome.FAIL
    assert found.found is not None
    assert found.found > 0


def test_more_rules_make_a_failure_harder_and_a_pass_no_easier(
    runs: dict[str, FinishedRun],
) -> None:
    alone = ruling(gated(runs, "bad", Limits({"accuracy": 0.05})), "max-drop accuracy")
    among = ruling(
        gated(runs, "bad", Limits({"accuracy": 0.05, "brier_mean": 0.1, "ordinal_mae": 0.1})),
        "max-drop accuracy",
    )

    assert among.high == alone.high
    assert alone.low is not None
    assert among.low is not None
    assert among.low < alone.low


def test_seconds_on_the_same_server_pass_and_under_other_conditions_decide_nothing(
    runs: dict[str, FinishedRun], tmp_path: Path
) -> None:
    limits = Limits(max_latency_ratio=1.5)
    busy = finished(tmp_path / "busy", TASKS, IDS[:20], concurrency=4, **LATER)

    assert gated(runs, "twin", limits).outcome == Outcome.PASS
    assert gated(runs, busy, limits).outcome == Outcome.INCONCLUSIVE
    trusted = Limits(max_latency_ratio=1.5, trust_latency=True)
    assert gated(runs, busy, trusted).outcome == Outcome.PASS
    assert gated(runs, "twin", Limits(max_latency_ratio=0.5)).outcome == Outcome.FAIL


def test_a_run_that_did_not_attempt_everything_fails_unless_told_otherwise(
    runs: dict[str, FinishedRun], tmp_path: Path
) -> None:
    directory = make_run(
        tmp_path / "part", TASKS, wrong_ids=IDS[:20], attempted=190, counts=counts(200), **LATER
    )
    part = read_run(directory, lambda _: TASKS)

    assert gated(runs, part, Limits({"accuracy": 0.05})).outcome == Outcome.FAIL
    enough = Limits({"accuracy": 0.05}, min_coverage=0.9)
    assert gated(runs, part, enough).outcome == Outcome.PASS
    assert gated({"baseline": part}, runs["twin"], Limits({"accuracy": 0.05})).outcome == (
        Outcome.INCONCLUSIVE
    )


def test_a_contradicted_identity_fails_unless_told_otherwise(
    runs: dict[str, FinishedRun], tmp_path: Path
) -> None:
    identity: dict[str, Any] = {
        "verdict": "contradicted",
        "fields": {},
        "findings": [],
        "notes": [],
    }
    other = finished(tmp_path / "other", TASKS, IDS[:20], identity=identity, **LATER)
    limits = Limits({"accuracy": 0.05})

    assert gated(runs, other, limits).outcome == Outcome.FAIL
    allowed = Limits({"accuracy": 0.05}, allow_contradicted=True)
    assert gated(runs, other, allowed).outcome == Outcome.PASS


def test_a_dozen_tasks_decide_nothing(tmp_path: Path) -> None:
    tasks = noul_tasks(12)
    pair = {"baseline": finished(tmp_path / "a", tasks)}
    bad = finished(tmp_path / "b", tasks, [task.id for task in tasks], **LATER)
    result = gated(pair, bad, Limits({"accuracy": 0.05}))

    assert result.outcome == Outcome.INCONCLUSIVE
    assert "too few" in ruling(result, "max-drop").reason


def test_a_candidate_at_the_limit_passes_no_more_often_than_the_level() -> None:
    """The bound itself, over simulated differences that are exactly the limit."""
    generator, limit, n = np.random.default_rng(21), 0.05, 200
    options = Options(draws=300)
    members = np.arange(n)
    sampling = Resampling(members, draws=options.draws, seed=0)
    passed = 0
    for _ in range(300):
        values = generator.choice([-1.0, 0.0, 1.0], p=[0.125, 0.8, 0.075], size=n)
        (sums,) = sampling.sums([mean_columns(values)])
        difference = share_difference("accuracy", values, Sums(sums, members, options))
        assert difference is not None
        assert difference.equivalence is not None
        passed += -difference.equivalence.low < limit

    assert passed / 300 <= 0.05 + 2 * (0.05 * 0.95 / 300) ** 0.5


@pytest.mark.parametrize(
    ("n", "outcome"), [(19, Outcome.INCONCLUSIVE), (20, Outcome.PASS)], ids=str
)
def test_twenty_independent_tasks_decide_and_nineteen_do_not(
    tmp_path: Path, n: int, outcome: Outcome
) -> None:
    tasks = noul_tasks(n)
    pair = {"baseline": finished(tmp_path / "a", tasks)}
    twin = finished(tmp_path / "b", tasks, **LATER)
    result = gated(pair, twin, Limits({"accuracy": 0.5}, max_latency_ratio=1.5))

    assert ruling(result, "max-drop").outcome == outcome
    assert ruling(result, "max-latency-ratio").outcome == outcome


def test_a_latency_rule_among_several_fails_by_the_stricter_bound() -> None:
    tasks = noul_tasks(20)
    runs = [
        sampled(Path(f"/runs/{name}"), tasks, skill=0.9, seed=seed, name=name, **when)
        for seed, (name, when) in enumerate((("a", {}), ("b", LATER)))
    ]
    comparison, strict = (compare(runs, Options(alpha=alpha, draws=500)) for alpha in (0.05, 0.025))
    plain, stricter = (one.pairs[0].latency for one in (comparison, strict))
    assert plain is not None
    assert plain.one_sided is not None
    assert stricter is not None
    assert stricter.one_sided is not None
    # What fails alone is not shown at the level of two rules.
    limit = (plain.one_sided.low + stricter.one_sided.low) / 2
    limits = Limits({"accuracy": 0.5}, max_latency_ratio=limit, trust_latency=True)

    alone = ruling(judge(comparison, comparison, limits), "max-latency-ratio")
    among = ruling(judge(comparison, strict, limits), "max-latency-ratio")

    assert (alone.outcome, among.outcome) == (Outcome.FAIL, Outcome.INCONCLUSIVE)
    assert (among.low, among.high) == (stricter.one_sided.low, plain.one_sided.high)
