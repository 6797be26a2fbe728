"""Pairs of runs whose difference is known."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jevexp.analysis.compare import compare, total_variation
from jevexp.analysis.comparison import PairResult
from jevexp.analysis.estimates import Difference, Options
from jevexp.analysis.metrics import METRICS
from jevexp.analysis.runs import FinishedRun, read_run
from jevexp.analysis.verdicts import Verdict
from jevexp.store import RunDirectory
from tests.analysis.made import counts, finished, grouped_tasks
from tests.support.runs import make_run, noul_tasks
from tests.support.summaries import summarize

QUICK = Options(draws=500)
TASKS = noul_tasks(40)
IDS = [task.id for task in TASKS]


def metric(result: PairResult, name: str) -> Difference:
    difference = result.difference(METRICS[name])
    assert difference is not None
    return difference


def only(*runs: FinishedRun, options: Options = QUICK) -> PairResult:
    (result,) = compare(runs, options).pairs
    return result


def test_the_differences_are_those_of_the_summaries(tmp_path: Path) -> None:
    baseline = finished(tmp_path / "a", TASKS, IDS[:3])
    candidate = finished(tmp_path / "b", TASKS, IDS[2:12])

    result = only(baseline, candidate)

    first = summarize(TASKS, RunDirectory(baseline.path).records())
    second = summarize(TASKS, RunDirectory(candidate.path).records())
    assert metric(result, "accuracy").delta == pytest.approx(second["accuracy"] - first["accuracy"])
    assert metric(result, "brier_mean").delta == pytest.approx(
        second["brier_mean"] - first["brier_mean"]
    )
    assert metric(result, "ece").delta == pytest.approx(second["ece"]["ece"] - first["ece"]["ece"])
    assert (metric(result, "accuracy").gained, metric(result, "accuracy").lost) == (2, 9)


def test_a_large_difference_is_found_in_both_directions(tmp_path: Path) -> None:
    good = finished(tmp_path / "a", TASKS)
    bad = finished(tmp_path / "b", TASKS, IDS[:20])

    assert metric(only(good, bad), "accuracy").verdict == Verdict.WORSE
    assert metric(only(bad, good), "accuracy").verdict == Verdict.BETTER
    assert metric(only(bad, good), "brier_mean").verdict == Verdict.BETTER


def test_two_flips_of_seventy_two_are_inconclusive(tmp_path: Path) -> None:
    tasks = noul_tasks(72)
    ids = [task.id for task in tasks]
    result = only(
        finished(tmp_path / "a", tasks, ids[:1]), finished(tmp_path / "b", tasks, ids[:3])
    )

    found = metric(result, "accuracy")
    assert found.verdict == Verdict.INCONCLUSIVE
    assert found.p == pytest.approx(0.5)
    assert found.tasks_needed is not None
    assert found.tasks_needed > 72


def test_the_same_answers_are_equivalent_only_within_a_margin_that_the_tasks_can_show(
    tmp_path: Path,
) -> None:
    runs = [finished(tmp_path / name, TASKS) for name in "ab"]

    narrow = metric(only(*runs, options=Options(draws=500, margin=0.02)), "accuracy")
    wide = metric(only(*runs, options=Options(draws=500, margin=0.1)), "accuracy")

    assert narrow.verdict == Verdict.INCONCLUSIVE
    assert wide.verdict == Verdict.EQUIVALENT


def test_flips_are_sorted_and_carry_both_distributions(tmp_path: Path) -> None:
    baseline = finished(tmp_path / "a", TASKS, ["t5"])
    result = only(baseline, finished(tmp_path / "b", TASKS, ["t3", "t1"]))

    assert [(flip.task_id, flip.right) for flip in result.flips] == [
        ("t1", "baseline"),
        ("t3", "baseline"),
        ("t5", "candidate"),
    ]
    assert result.flips[0].baseline == {"no": 0.1, "yes": 0.9}
    assert result.flips[0].distance == pytest.approx(0.65)
    assert result.distance_max == pytest.approx(0.65)


def test_p_values_are_adjusted_over_all_pairs(tmp_path: Path) -> None:
    good = finished(tmp_path / "a", TASKS)
    others = [finished(tmp_path / name, TASKS, IDS[:6]) for name in "bcd"]

    alone = only(good, others[0])
    among = compare([good, *others], QUICK).pairs

    first, second = metric(alone, "accuracy"), metric(among[0], "accuracy")
    assert first.p == second.p
    assert first.p_adjusted is not None
    assert second.p_adjusted is not None
    assert second.p_adjusted > first.p_adjusted


def test_equal_latencies_have_the_ratio_one(tmp_path: Path) -> None:
    result = only(*(finished(tmp_path / name, TASKS) for name in "ab"))

    assert result.latency is not None
    assert result.latency.ratio == 1
    assert result.latency.interval == (1, 1)


def test_only_what_both_attempted_is_compared(tmp_path: Path) -> None:
    whole = finished(tmp_path / "a", TASKS)
    part = read_run(
        make_run(tmp_path / "b", TASKS, attempted=10, counts=counts(40)), lambda _: TASKS
    )

    comparison = compare([whole, part], QUICK)
    run = comparison.runs[1]

    assert (run.attempted, run.requested, run.coverage) == (10, 40, 0.25)
    assert (comparison.pairs[0].paired, comparison.pairs[0].coverage) == (10, 0.25)


def test_nothing_in_common_is_no_numbers(tmp_path: Path) -> None:
    whole = finished(tmp_path / "a", TASKS)
    empty = read_run(
        make_run(tmp_path / "b", TASKS, attempted=0, counts=counts(40)), lambda _: TASKS
    )

    result = only(whole, empty)

    assert (result.paired, result.metrics, result.flips, result.latency) == (0, [], [], None)


def test_without_the_tasks_there_is_accuracy_and_no_brier(tmp_path: Path) -> None:
    directories = [make_run(tmp_path / name, TASKS, counts=counts(40)) for name in "ab"]
    result = only(*(read_run(one, lambda _: None) for one in directories))

    assert [one.name for one in result.metrics] == ["accuracy", "ece"]
    assert "no Brier" in result.remarks[0]


def test_the_tasks_of_one_side_are_enough(tmp_path: Path) -> None:
    bare = read_run(make_run(tmp_path / "a", TASKS, counts=counts(40)), lambda _: None)
    result = only(bare, finished(tmp_path / "b", TASKS))

    assert [one.name for one in result.metrics] == ["accuracy", "brier_mean", "ece"]
    assert result.remarks == []


def test_a_result_is_plain_data_and_the_same_every_time(tmp_path: Path) -> None:
    tasks = grouped_tasks(20)
    runs = [finished(tmp_path / "a", tasks), finished(tmp_path / "b", tasks, IDS[:5])]

    first, second = (json.dumps(compare(runs, QUICK).plain()) for _ in range(2))

    assert first == second
    assert only(*runs).clusters == 20


def test_the_distance_of_two_distributions_is_half_the_sum_of_differences() -> None:
    assert total_variation({"no": 0.1, "yes": 0.9}, {"no": 0.75, "yes": 0.25}) == pytest.approx(
        0.65
    )


def test_equal_distributions_are_at_distance_zero_and_disjoint_ones_at_one() -> None:
    assert total_variation({"a": 0.5, "b": 0.5}, {"b": 0.5, "a": 0.5}) == 0
    assert total_variation({"a": 1.0}, {"b": 1.0}) == 1


def test_the_largest_change_of_mind_comes_first_on_each_side(tmp_path: Path) -> None:
    baseline = finished(tmp_path / "a", TASKS, ["t5", "t6"])
    candidate = finished(tmp_path / "b", TASKS, ["t1", "t2", "t3"])
    sure = {"no": 0.99, "yes": 0.01}
    records = candidate.records | {"t2": replace(candidate.records["t2"], probs=sure)}
    surer = {"no": 0.98, "yes": 0.02}
    before = baseline.records | {"t6": replace(baseline.records["t6"], probs=surer)}

    result = only(replace(baseline, records=before), replace(candidate, records=records))

    assert [(flip.right, flip.task_id) for flip in result.flips] == [
        ("baseline", "t2"),
        ("baseline", "t1"),
        ("baseline", "t3"),
        ("candidate", "t6"),
        ("candidate", "t5"),
    ]


def test_coverage_is_of_the_requested_tasks_and_not_of_the_attempted_ones(tmp_path: Path) -> None:
    first, second = (
        read_run(make_run(tmp_path / name, TASKS, attempted=n, counts=counts(40)), lambda _: TASKS)
        for name, n in (("a", 30), ("b", 20))
    )

    comparison = compare([first, second], QUICK)

    assert [run.coverage for run in comparison.runs] == [0.75, 0.5]
    assert (comparison.pairs[0].paired, comparison.pairs[0].coverage) == (20, 0.5)
