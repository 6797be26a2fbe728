"""What a decision comes to: validity, prediction, and whether it is right."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.core.decision import ProbsSource
from jevexp.core.task import Kind, Task
from jevexp.harness.scoring import (
    RESCALE_TOLERANCE,
    STRICT_TOLERANCE,
    Score,
    argmax,
    expected_level,
    score,
)
from tests.support.tasks import (
    answer,
    distributions,
    failure,
    label_only,
    numbers,
    scored_tasks,
    task,
)

NOUL = task("noul")
CHOICE = task("choice")
SCORE = task("score")
NO_TRUTH = {kind: task(kind, expected=None) for kind in ("noul", "choice", "score")}


def noul(no: Any, yes: Any) -> Score:
    return score(NOUL, answer({"no": no, "yes": yes}))


# Validity


# As in the pinned harness the comparison is one of floats: 1 - 0.999 is a little more than 0.001.
@pytest.mark.parametrize("total", [1.0, 1.001, 1.0009999, 0.9990001])
def test_a_sum_within_a_thousandth_passes_unchanged(total: float) -> None:
    verdict = noul(total - 0.75, 0.75)
    assert verdict.valid
    assert verdict.strict_valid
    assert not verdict.renormalized
    assert verdict.probs == {"no": total - 0.75, "yes": 0.75}


@pytest.mark.parametrize("total", [1.0011, 0.999, 0.9989, 1.0199, 0.9801])
def test_a_sum_within_two_hundredths_is_rescaled(total: float) -> None:
    verdict = noul(total - 0.75, 0.75)
    assert verdict.valid
    assert not verdict.strict_valid
    assert verdict.renormalized
    assert verdict.probs is not None
    assert verdict.probs["yes"] == pytest.approx(0.75 / total, abs=1e-15)
    assert math.fsum(verdict.probs.values()) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("total", [1.02, 0.98, 1.0201, 0.9799, 0.76, 1.7])
def test_a_sum_further_away_is_invalid_and_wrong(total: float) -> None:
    verdict = noul(total - 0.75, 0.75)
    assert verdict == Score(
        correct=False, schema_error=f"probs sum to {round(total, 12)}, tolerance 0.001"
    )


def test_all_zeros_are_invalid_and_not_divided_by() -> None:
    assert noul(0, 0) == Score(correct=False, schema_error="probs sum to 0.0, tolerance 0.001")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1e-9, 1.0000001, 2, -1, 10**400])
def test_a_number_outside_0_to_1_is_invalid(value: float) -> None:
    verdict = noul(0.25, value)
    assert not verdict.valid
    assert verdict.correct is False
    assert verdict.probs is None
    assert verdict.predicted is None
    assert verdict.schema_error == f"prob['yes'] out of [0,1]: {value!r}"


@pytest.mark.parametrize("value", [True, False, "0.75", None, [0.75], {"p": 0.75}, 0.75 + 0j])
def test_what_is_no_number_is_invalid(value: Any) -> None:
    verdict = noul(0.25, value)
    assert not verdict.valid
    assert verdict.schema_error == f"prob['yes'] is not a number: {value!r}"


def test_a_number_too_long_to_be_printed_is_invalid_all_the_same() -> None:
    verdict = noul(0.25, 10**5000)
    assert not verdict.valid
    assert verdict.schema_error == "prob['yes'] out of [0,1]: <int: ValueError>"


def test_whole_numbers_are_probabilities() -> None:
    verdict = noul(0, 1)
    assert verdict.strict_valid
    assert verdict.predicted == "yes"


@pytest.mark.parametrize(
    ("probs", "reason"),
    [
        (None, "missing=['no', 'yes'] extra=[]"),
        ({}, "missing=['no', 'yes'] extra=[]"),
        ({"yes": 1.0}, "missing=['no'] extra=[]"),
        ({"no": 0.5, "yes": 0.5, "maybe": 0.0}, "missing=[] extra=['maybe']"),
        ({"No": 0.5, "yes": 0.5}, "missing=['no'] extra=['No']"),
        ({"no ": 0.5, "yes": 0.5}, "missing=['no'] extra=['no ']"),
        ({"no": 0.5, True: 0.5, 1.5: 0.0}, "missing=['yes'] extra=[1.5, True]"),
    ],
)
def test_labels_must_be_the_tasks_own_to_the_letter(probs: Any, reason: str) -> None:
    verdict = score(NOUL, answer(probs))
    assert not verdict.valid
    assert verdict.correct is False
    assert verdict.schema_error == f"label keys mismatch: {reason}"


def test_whole_number_levels_are_not_the_labels_of_a_score_task() -> None:
    levels: Any = {0: 0.0, 1: 0.0, 2: 1.0, 3: 0.0}
    assert not score(SCORE, answer(levels)).valid


# Prediction


def test_a_tie_goes_to_the_lexicographically_smallest_label() -> None:
    even = dict.fromkeys(reversed(CHOICE.labels), 1 / 3)
    assert score(CHOICE, answer(even)).predicted == "Account Access"
    assert noul(0.5, 0.5).predicted == "no"


def test_a_tie_between_levels_goes_by_text_and_not_by_number() -> None:
    levels = [str(level) for level in range(11)]
    assert argmax({level: 0.5 if level in ("2", "10") else 0.0 for level in levels}) == "10"


def test_a_score_task_is_right_by_its_likeliest_level_not_by_its_mean() -> None:
    verdict = score(SCORE, answer({"0": 0.45, "1": 0.0, "2": 0.0, "3": 0.55}))
    assert verdict.predicted == "3"
    assert verdict.correct is False
    assert verdict.ordinal_ev == pytest.approx(1.65, abs=1e-15)


def test_the_expected_level_is_of_the_rescaled_distribution() -> None:
    verdict = score(SCORE, answer({"0": 0.0, "1": 0.0, "2": 0.505, "3": 0.505}))
    assert verdict.renormalized
    assert verdict.ordinal_ev == pytest.approx(2.5, abs=1e-15)


@pytest.mark.parametrize("kind", ["noul", "choice"])
def test_only_score_tasks_have_an_expected_level(kind: str) -> None:
    of = task(kind)
    uniform = dict.fromkeys(of.labels, 1 / len(of.labels))
    assert score(of, answer(uniform)).ordinal_ev is None


# Tasks without a truth, and excluded ones


@pytest.mark.parametrize(("kind", "predicts"), [("noul", True), ("choice", True), ("score", False)])
def test_without_a_truth_an_answer_is_valid_and_neither_right_nor_wrong(
    kind: str, predicts: bool
) -> None:
    of = NO_TRUTH[kind]
    verdict = score(of, answer(dict.fromkeys(of.labels, 1 / len(of.labels))))
    assert verdict.valid
    assert verdict.correct is None
    assert (verdict.predicted is not None) is predicts


@pytest.mark.parametrize("kind", ["noul", "choice", "score"])
def test_without_a_truth_failures_and_invalid_distributions_are_wrong_all_the_same(
    kind: str,
) -> None:
    of = NO_TRUTH[kind]
    off_sum = dict.fromkeys(of.labels, 0.9)
    above_one = dict.fromkeys(of.labels, 2)
    for decision in (failure(), answer({}), answer(off_sum), answer(above_one), answer(None)):
        assert score(of, decision).correct is False


@pytest.mark.parametrize("kind", ["noul", "choice", "score"])
def test_without_a_truth_a_label_alone_is_neither_right_nor_wrong(kind: str) -> None:
    of = NO_TRUTH[kind]
    for label in (None, "nonsense", of.labels[0]):
        assert score(of, label_only(label)).correct is None


def test_an_excluded_task_gets_a_verdict_like_any_other() -> None:
    # That it counts nowhere is the summary's business.
    excluded = task("noul", provenance={"exclude_reason": "ambiguous"})
    decision = answer({"no": 0.1, "yes": 0.9})
    assert score(excluded, decision) == score(NOUL, decision)


# Failures and labels without a distribution


def test_a_failure_is_invalid_and_wrong_whatever_it_brings_along() -> None:
    perfect = answer({"no": 0.0, "yes": 1.0}, ok=False, error="http_error")
    assert score(NOUL, perfect) == Score(correct=False)


def test_a_known_label_alone_is_valid_without_a_distribution() -> None:
    assert score(CHOICE, label_only("billing")) == Score(
        valid=True, strict_valid=True, predicted="billing", correct=True
    )
    assert score(CHOICE, label_only("shipping")).correct is False
    assert score(SCORE, label_only("2")).correct is True


@pytest.mark.parametrize("label", [None, "", "Billing", "billing ", "other", 2])
def test_an_unknown_label_or_none_is_invalid_and_wrong(label: Any) -> None:
    verdict = score(CHOICE, label_only(label))
    assert not verdict.valid
    assert verdict.correct is False
    assert verdict.predicted is None
    assert verdict.schema_error is not None


def test_a_distribution_is_ignored_where_only_a_label_was_promised() -> None:
    decision = answer({"no": 0.0, "yes": 1.0}, probs_source=ProbsSource.LABEL_ONLY)
    assert score(NOUL, decision).schema_error == "abstained"


def test_a_verbalized_distribution_is_scored_like_a_native_one() -> None:
    decision = answer({"no": 0.2, "yes": 0.8}, probs_source=ProbsSource.VERBALIZED)
    assert score(NOUL, decision) == noul(0.2, 0.8)


# Properties


@given(scored_tasks(), st.data())
def test_whatever_comes_back_gets_a_verdict(of: Task, data: st.DataObject) -> None:
    keys = st.one_of(st.sampled_from(of.labels), st.text(max_size=3))
    probs = data.draw(st.dictionaries(keys, numbers(), max_size=5))
    verdict = score(of, answer(probs))
    assert verdict.valid is (verdict.schema_error is None)
    assert verdict.valid is (verdict.probs is not None)
    if not verdict.valid:
        assert verdict.predicted is None
        assert verdict.correct is False


@given(scored_tasks(), st.data())
def test_a_valid_distribution_is_one(of: Task, data: st.DataObject) -> None:
    returned = data.draw(distributions(of.labels, off=0.03))
    verdict = score(of, answer(returned))
    assert not (verdict.strict_valid and verdict.renormalized)
    assert verdict.valid is (verdict.strict_valid or verdict.renormalized)
    if verdict.probs is None:
        assert abs(math.fsum(returned.values()) - 1) > RESCALE_TOLERANCE
        return
    tolerance = STRICT_TOLERANCE if verdict.strict_valid else 1e-12
    assert abs(math.fsum(verdict.probs.values()) - 1) <= tolerance
    assert all(0 <= p <= 1 for p in verdict.probs.values())
    assert set(verdict.probs) == set(of.labels)
    assert list(verdict.probs) == list(returned)
    if verdict.strict_valid:
        assert verdict.probs == returned
    if verdict.predicted is not None:
        assert verdict.predicted in of.labels
        assert verdict.probs[verdict.predicted] == max(verdict.probs.values())
        assert verdict.correct is (None if of.gold is None else verdict.predicted == of.gold)
    if of.kind is Kind.SCORE:
        assert verdict.ordinal_ev is not None
        top = len(of.labels) - 1
        assert -1e-9 <= verdict.ordinal_ev <= top * (1 + STRICT_TOLERANCE)


@given(scored_tasks(), st.data(), st.randoms(use_true_random=False))
def test_the_order_of_the_labels_changes_nothing(
    of: Task, data: st.DataObject, order: random.Random
) -> None:
    returned = data.draw(distributions(of.labels, off=0.03))
    shuffled = list(returned.items())
    order.shuffle(shuffled)
    assert score(of, answer(dict(shuffled))) == score(of, answer(returned))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_the_expected_level_lies_between_the_lowest_and_the_highest(weights: list[float]) -> None:
    total = math.fsum(weights)
    if total < 1e-9:
        return
    probs = {str(level): weight / total for level, weight in enumerate(weights)}
    assert -1e-9 <= expected_level(probs) <= len(weights) - 1 + 1e-9
