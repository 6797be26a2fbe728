"""What records come to: counts, means that may not exist, and numbers worked out by hand."""

import math
import random
import statistics
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jevexp.core.record import Record
from jevexp.core.task import Task
from jevexp.harness.scoring import score
from jevexp.harness.summary import percentile
from tests.support.summaries import summarize
from tests.support.tasks import answer, distributions, failure, record, scored_tasks, task


def scored(of: Task, probs: dict[str, float] | None, **changes: Any) -> Record:
    """The record that an answer makes, or a failure where there is none."""
    decision = answer(probs) if probs is not None else failure()
    verdict = score(of, decision)
    made = {
        "ok": decision.ok,
        "status": "ok" if decision.ok else "failed",
        "valid": verdict.valid,
        "strict_valid": verdict.strict_valid,
        "renormalized": verdict.renormalized,
        "probs": verdict.probs,
        "predicted": verdict.predicted,
        "correct": verdict.correct,
        "ordinal_ev": verdict.ordinal_ev,
    }
    return record(of, **made | changes)


def two(kind: str, **changes: Any) -> tuple[Task, Task]:
    return task(kind, id="a", **changes), task(kind, id="b", **changes)


# Nothing to count


NUMBERS = ("accuracy", "schema_validity", "schema_validity_strict", "operational_success")
MEANS = ("brier_mean", "ece", "ordinal_mae", "price_per_1000_decisions_usd")


def test_without_records_every_mean_is_null_and_every_count_0() -> None:
    summary = summarize([task("noul"), task("score")], [])
    for name in (*NUMBERS, *MEANS, "macro_accuracy", "ledger_charged_usd"):
        assert summary[name] is None, name
    assert summary["n_planned"] == 2
    assert summary["n_attempted"] == summary["n_scorable"] == summary["calibration_n"] == 0
    assert summary["coverage"] == 0
    assert summary["latency"] == {"n": 0, "p50_s": None, "p95_s": None}
    assert summary["latency_failures"] == {"n": 0, "p50_s": None, "p95_s": None}
    assert summary["cost_basis"] == []
    assert summary["complete"] is False


def test_without_tasks_even_the_coverage_is_null() -> None:
    summary = summarize([], [])
    assert summary["coverage"] is None
    assert summary["per_family"] == summary["splits"] == {}
    assert summary["paraphrase_consistency"] == {
        "pairs": 0,
        "both_valid": 0,
        "agree": 0,
        "agreement": None,
        "both_correct_rate_all_pairs": None,
    }


def test_without_score_tasks_there_is_no_ordinal_error() -> None:
    of = task("noul")
    assert summarize([of], [scored(of, {"no": 0.0, "yes": 1.0})])["ordinal_mae"] is None


def test_a_run_of_failures_has_an_accuracy_of_0_and_no_calibration() -> None:
    tasks = two("noul")
    summary = summarize(tasks, [scored(of, None) for of in tasks])
    assert summary["accuracy"] == 0
    assert summary["operational_success"] == 0
    assert summary["brier_mean"] is None
    assert summary["ece"] is None
    assert summary["latency_failures"]["n"] == 2


# What may not be summarized


def test_two_records_of_one_task_are_an_error() -> None:
    of = task("noul")
    with pytest.raises(ValueError, match="task 'noul-1': has two records"):
        summarize([of], [record(of), record(of)])


def test_a_record_of_a_task_that_was_never_planned_is_an_error() -> None:
    with pytest.raises(ValueError, match="task 'noul-1': has a record and was never planned"):
        summarize([task("choice")], [record(task("noul"))])


# What counts


def test_what_was_never_attempted_is_not_wrong() -> None:
    tasks = two("noul")
    summary = summarize(tasks, [scored(tasks[0], {"no": 0.1, "yes": 0.9})])
    assert summary["accuracy"] == 1
    assert summary["coverage"] == 0.5
    assert summary["complete"] is False


def test_a_failure_is_wrong_and_an_invalid_answer_too() -> None:
    tasks = [task("noul", id=name) for name in "abcd"]
    good, bad = {"no": 0.1, "yes": 0.9}, {"no": 0.9, "yes": 0.9}
    records = [scored(of, probs) for of, probs in zip(tasks, (good, bad, None, good), strict=True)]
    summary = summarize(tasks, records)
    assert summary["accuracy"] == 0.5
    assert summary["n_valid"] == summary["calibration_n"] == 2
    assert summary["schema_validity"] == 0.5
    assert summary["operational_success"] == 0.75


@pytest.mark.parametrize(
    "changes", [{"expected": None}, {"provenance": {"exclude_reason": "ambiguous"}}]
)
def test_a_task_without_truth_or_excluded_is_attempted_and_not_scored(
    changes: dict[str, Any],
) -> None:
    plain, other = task("noul", id="a"), task("noul", id="b", **changes)
    wrong = {"no": 0.9, "yes": 0.1}
    summary = summarize([plain, other], [scored(plain, wrong), scored(other, wrong)])
    assert summary["n_attempted"] == summary["n_valid"] == 2
    assert summary["n_scorable"] == summary["calibration_n"] == 1
    assert summary["accuracy"] == 0
    assert summary["brier_mean"] == pytest.approx(1.62, abs=1e-15)


def test_an_empty_reason_excludes_nothing() -> None:
    of = task("noul", provenance={"exclude_reason": ""})
    assert summarize([of], [scored(of, {"no": 0.0, "yes": 1.0})])["n_scorable"] == 1


def test_a_label_without_distribution_counts_for_accuracy_and_not_for_calibration() -> None:
    of = task("noul")
    summary = summarize([of], [record(of, probs=None, correct=True)])
    assert summary["accuracy"] == 1
    assert summary["calibration_n"] == 0


def test_the_macro_accuracy_is_the_mean_of_the_families_that_have_one() -> None:
    tasks = [
        task("noul", id="a", family="x"),
        task("noul", id="b", family="x"),
        task("noul", id="c", family="y"),
        task("noul", id="d", family="without truth", expected=None),
        task("noul", id="e", family="unattempted"),
    ]
    right, wrong = {"no": 0.1, "yes": 0.9}, {"no": 0.9, "yes": 0.1}
    records = [
        scored(of, probs) for of, probs in zip(tasks, (right, wrong, right, right), strict=False)
    ]
    summary = summarize(tasks, records)
    assert summary["macro_accuracy"] == 0.75
    assert summary["accuracy"] == 2 / 3
    assert summary["per_family"]["without truth"]["accuracy"] is None
    assert list(summary["per_family"]) == ["unattempted", "without truth", "x", "y"]


def test_splits_are_summarized_apart() -> None:
    tasks = [task("noul", id="a"), task("noul", id="b", split="private")]
    summary = summarize(tasks, [scored(tasks[1], {"no": 0.1, "yes": 0.9})])
    assert summary["splits"]["public"]["accuracy"] is None
    assert summary["splits"]["private"]["accuracy"] == 1


def test_what_the_records_name_is_listed_once_and_sorted() -> None:
    tasks = [task("noul", id=name) for name in "abc"]
    records = [
        record(tasks[0], model="m-2", cost_basis="z", probs_source="verbalized"),
        record(tasks[1], model="m-1", cost_basis="a"),
        record(tasks[2], model="m-2", cost_basis="a"),
    ]
    summary = summarize(tasks, records, ledger_charged_usd=0.5)
    assert summary["model_identities"] == ["m-1", "m-2"]
    assert summary["probability_sources"] == ["native", "verbalized"]
    assert summary["cost_basis"] == ["a", "z"]
    assert summary["ledger_charged_usd"] == 0.5
    assert summary["version"] == "jevbench-v1"


def test_a_price_exists_only_where_every_cost_is_known() -> None:
    tasks = two("noul")
    known = [record(tasks[0], cost_usd=0.001), record(tasks[1], cost_usd=0.002)]
    assert summarize(tasks, known)["price_per_1000_decisions_usd"] == pytest.approx(1.5)
    unknown = [known[0], record(tasks[1], cost_usd=None)]
    assert summarize(tasks, unknown)["price_per_1000_decisions_usd"] is None
    free = [record(of, cost_usd=0.0) for of in tasks]
    assert summarize(tasks, free)["price_per_1000_decisions_usd"] == 0


# Paraphrases


def paraphrases(*answers: dict[str, float] | None, group: str = "g") -> dict[str, Any]:
    tasks = [task("noul", id=f"p{n}", group=group) for n in range(len(answers))]
    records = [scored(of, probs) for of, probs in zip(tasks, answers, strict=True)]
    consistency: dict[str, Any] = summarize(tasks, records)["paraphrase_consistency"]
    return consistency


YES, NO = {"no": 0.1, "yes": 0.9}, {"no": 0.8, "yes": 0.2}


@pytest.mark.parametrize(
    ("answers", "valid", "agree", "agreement", "correct"),
    [
        ((YES, YES), 1, 1, 1.0, 1.0),
        ((NO, NO), 1, 1, 1.0, 0.0),
        ((YES, NO), 1, 0, 0.0, 0.0),
        ((YES, None), 0, 0, None, 0.0),
        ((None, None), 0, 0, None, 0.0),
    ],
)
def test_two_wordings_of_a_question_agree_or_not(
    answers: tuple[dict[str, float] | None, ...],
    valid: int,
    agree: int,
    agreement: float | None,
    correct: float,
) -> None:
    assert paraphrases(*answers) == {
        "pairs": 1,
        "both_valid": valid,
        "agree": agree,
        "agreement": agreement,
        "both_correct_rate_all_pairs": correct,
    }


@pytest.mark.parametrize("count", [1, 3])
def test_only_groups_of_two_are_pairs(count: int) -> None:
    assert paraphrases(*[YES] * count)["pairs"] == 0


def test_a_group_without_a_name_is_still_a_group() -> None:
    assert paraphrases(YES, YES, group="")["pairs"] == 1


def test_a_pair_half_attempted_is_a_pair_and_not_valid() -> None:
    tasks = two("noul", group="g")
    summary = summarize(tasks, [scored(tasks[0], YES)])
    assert summary["paraphrase_consistency"]["pairs"] == 1
    assert summary["paraphrase_consistency"]["both_valid"] == 0


# Numbers worked out by hand


def test_the_brier_score_sums_over_all_labels() -> None:
    of = task("choice")  # billing is right
    probs = {"billing": 0.5, "Account Access": 0.25, "shipping": 0.25}
    # 0.5^2 + 0.25^2 + 0.25^2
    assert summarize([of], [scored(of, probs)])["brier_mean"] == 0.375


@pytest.mark.parametrize(
    ("yes", "brier"), [(1.0, 0.0), (0.0, 2.0), (0.5, 0.5), (0.75, 0.125), (0.25, 1.125)]
)
def test_the_brier_score_runs_from_0_to_2(yes: float, brier: float) -> None:
    of = task("noul")
    assert summarize([of], [scored(of, {"no": 1 - yes, "yes": yes})])["brier_mean"] == brier


def test_the_ordinal_error_is_the_distance_of_the_mean_level() -> None:
    one, other = two("score")  # level 2 is right
    records = [
        scored(one, {"0": 0.0, "1": 0.5, "2": 0.5, "3": 0.0}),  # mean 1.5
        scored(other, {"0": 0.0, "1": 0.0, "2": 0.25, "3": 0.75}),  # mean 2.75
    ]
    assert summarize([one, other], records)["ordinal_mae"] == pytest.approx(0.625, abs=1e-15)


def test_the_calibration_error_of_five_answers() -> None:
    tasks = [task("noul", id=name) for name in "abcde"]
    right = (0.95, 1.0, 0.6)
    answers = [{"no": 1 - p, "yes": p} for p in right] + [
        {"no": 0.65, "yes": 0.35},
        {"no": 0.5, "yes": 0.5},
    ]
    summary = summarize(
        tasks, [scored(of, probs) for of, probs in zip(tasks, answers, strict=True)]
    )
    # Bin 9: confidence 0.975, accuracy 1. Bin 6: 0.625, 1/2. Bin 5: 0.5, 0 (a tie says no).
    expected = 2 / 5 * 0.025 + 2 / 5 * 0.125 + 1 / 5 * 0.5
    assert summary["ece"]["ece"] == pytest.approx(expected, abs=1e-15)
    assert summary["ece"]["n"] == 5
    bins = summary["ece"]["bins"]
    assert [one["n"] for one in bins] == [0, 0, 0, 0, 0, 1, 2, 0, 0, 2]
    assert bins[6]["mean_confidence"] == pytest.approx(0.625)
    assert bins[6]["accuracy"] == 0.5
    assert (bins[0]["lo"], bins[0]["hi"], bins[9]["lo"], bins[9]["hi"]) == (0.0, 0.1, 0.9, 1.0)
    assert bins[0]["mean_confidence"] is None
    assert bins[0]["accuracy"] is None


@pytest.mark.parametrize(("top", "index"), [(0.5, 5), (0.6, 6), (0.7, 7), (0.9, 9), (1.0, 9)])
def test_a_bin_holds_its_lower_edge_and_the_last_one_both(top: float, index: int) -> None:
    of = task("noul")
    bins = summarize([of], [scored(of, {"no": 1 - top, "yes": top})])["ece"]["bins"]
    assert [one["n"] for one in bins].index(1) == index


def test_percentiles_interpolate_between_ranks() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    assert percentile([4.0, 1.0], 0.95) == pytest.approx(3.85)
    assert percentile([7.0], 0.95) == 7.0
    assert percentile([], 0.5) is None


@given(st.lists(st.floats(0, 1e3), min_size=2, max_size=40))
def test_percentiles_are_those_of_the_standard_library(values: list[float]) -> None:
    twentieths = statistics.quantiles(values, n=20, method="inclusive")
    assert percentile(values, 0.5) == pytest.approx(twentieths[9], rel=1e-12, abs=1e-12)
    assert percentile(values, 0.95) == pytest.approx(twentieths[18], rel=1e-12, abs=1e-12)
    assert percentile(values, 0.5) == pytest.approx(statistics.median(values), rel=1e-12)


# Properties


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Task], list[Record]]:
    """Some tasks, and records of some of them."""
    tasks = [
        drawn.model_copy(
            update={
                "id": f"t{number}",
                "group": draw(st.sampled_from([None, "g1", "g2"])),
                "family": draw(st.sampled_from(["x", "y"])),
            }
        )
        for number, drawn in enumerate(draw(st.lists(scored_tasks(), max_size=12)))
    ]
    records = []
    for of in tasks:
        kind = draw(st.sampled_from(["answered", "failed", "unattempted"]))
        if kind != "unattempted":
            probs = draw(distributions(of.labels, off=0.03)) if kind == "answered" else None
            latency_s = draw(st.floats(0, 10))
            cost = draw(st.one_of(st.none(), st.floats(0, 1)))
            records.append(scored(of, probs, latency_s=latency_s, cost_usd=cost))
    return tasks, records


@settings(max_examples=50)
@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_tasks_and_records_changes_nothing(
    run: tuple[list[Task], list[Record]], order: random.Random
) -> None:
    tasks, records = run
    shuffled_tasks, shuffled_records = list(tasks), list(records)
    order.shuffle(shuffled_tasks)
    order.shuffle(shuffled_records)
    assert summarize(shuffled_tasks, shuffled_records) == summarize(tasks, records)


@settings(max_examples=50)
@given(runs())
def test_every_number_stays_within_its_bounds(run: tuple[list[Task], list[Record]]) -> None:
    tasks, records = run
    summary = summarize(tasks, records)
    groups = [summary, *summary["per_family"].values(), *summary["splits"].values()]
    for group in groups:
        assert group["n_correct"] <= group["n_scorable"] <= group["n_attempted"]
        assert group["n_attempted"] <= group["n_planned"]
        assert group["calibration_n"] <= min(group["n_scorable"], group["n_valid"])
        for name in (*NUMBERS, "coverage"):
            assert group[name] is None or 0 <= group[name] <= 1
        assert group["brier_mean"] is None or 0 <= group["brier_mean"] <= 2.01
        assert group["ordinal_mae"] is None or 0 <= group["ordinal_mae"] <= 3.01
        if group["ece"] is not None:
            assert 0 <= group["ece"]["ece"] <= 1
            assert sum(one["n"] for one in group["ece"]["bins"]) == group["calibration_n"]
        latency = group["latency"]
        assert latency["n"] == group["n_attempted"]
        if latency["n"]:
            assert 0 <= latency["p50_s"] <= latency["p95_s"] + 1e-12 <= 10 + 1e-9
    assert sum(part["n_planned"] for part in summary["per_family"].values()) == len(tasks)
    assert sum(part["n_correct"] for part in summary["splits"].values()) == summary["n_correct"]
    assert summary["complete"] is (len(records) == len(tasks))
    pairs = summary["paraphrase_consistency"]
    assert pairs["agree"] <= pairs["both_valid"] <= pairs["pairs"]


@settings(max_examples=50)
@given(runs())
def test_the_brier_mean_is_that_of_an_independent_formula(
    run: tuple[list[Task], list[Record]],
) -> None:
    tasks, records = run
    by_id = {of.id: of for of in tasks}
    scores = [
        # sum p^2 - 2 p[gold] + 1
        math.fsum(p * p for p in one.probs.values()) - 2 * one.probs[gold] + 1
        for one in records
        if one.probs is not None and (gold := by_id[one.task_id].gold) is not None
    ]
    expected = math.fsum(scores) / len(scores) if scores else None
    assert summarize(tasks, records)["brier_mean"] == (
        None if expected is None else pytest.approx(expected, abs=1e-12)
    )
