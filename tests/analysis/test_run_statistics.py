"""What is said about each run of a comparison by itself."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from jevexp.analysis.compare import compare, describe
from jevexp.analysis.estimates import Options
from jevexp.analysis.intervals import wilson
from jevexp.analysis.metrics import ACCURACY
from jevexp.analysis.runs import read_run
from jevexp.core.task import Task
from jevexp.harness.summary import summarize as harness_summary
from jevexp.store import RunDirectory
from tests.analysis.made import counts, finished, grouped_tasks
from tests.support.runs import failure, make_run, manifest, noul_tasks, record
from tests.support.summaries import summarize

QUICK = Options(draws=500)
TASKS = noul_tasks(40)
IDS = [task.id for task in TASKS]


def test_the_numbers_are_those_of_the_summary(tmp_path: Path) -> None:
    run = finished(tmp_path / "a", TASKS, IDS[:7])
    summary = summarize(TASKS, RunDirectory(run.path).records())
    (found,) = describe(run, QUICK).runs

    assert found.accuracy is not None
    assert found.accuracy.value == summary["accuracy"]
    assert found.accuracy.interval == pytest.approx(wilson(33, 40))
    assert found.estimates["brier_mean"] is not None
    assert found.estimates["brier_mean"].value == pytest.approx(summary["brier_mean"])
    assert found.estimates["brier_mean"].interval is not None
    assert (
        found.estimates["brier_mean"].interval.low
        < found.estimates["brier_mean"].value
        < found.estimates["brier_mean"].interval.high
    )
    assert found.estimates["ece"] is not None
    assert found.estimates["ece"].value == pytest.approx(summary["ece"]["ece"])
    for one, other in zip(found.bins, summary["ece"]["bins"], strict=True):
        assert one.n == other["n"]
        assert one.accuracy == pytest.approx(other["accuracy"])
        assert one.mean_confidence == pytest.approx(other["mean_confidence"])
    assert found.latency is not None
    assert found.latency.median.value == summary["latency"]["p50_s"]
    assert found.latency.p95 == summary["latency"]["p95_s"]
    for family in found.families:
        assert family.accuracy is not None
        assert family.accuracy.value == summary["per_family"][family.name]["accuracy"]


def test_wordings_of_one_question_widen_the_interval(tmp_path: Path) -> None:
    tasks = grouped_tasks(20)
    (run,) = describe(finished(tmp_path / "a", tasks, IDS[:10]), QUICK).runs

    assert run.accuracy is not None
    assert run.accuracy.interval is not None
    assert run.accuracy_independent is not None
    assert run.accuracy_independent == pytest.approx(wilson(30, 40))
    assert run.accuracy.interval.low < run.accuracy_independent.low
    assert (run.accuracy.n, run.accuracy.clusters) == (40, 20)
    assert run.paraphrases is not None
    assert (run.paraphrases.agree, run.paraphrases.both_valid) == (20, 20)


def test_one_run_has_no_pairs_and_no_tests(tmp_path: Path) -> None:
    found = describe(finished(tmp_path / "a", TASKS), QUICK)

    assert (found.pairs, found.matrix, found.tests) == ([], [], 0)


def test_mistakes_are_those_of_one_run_the_surest_first(tmp_path: Path) -> None:
    run = finished(tmp_path / "a", TASKS, IDS[:3])
    sure = replace(run.records[IDS[1]], probs={"no": 0.99, "yes": 0.01})
    run = replace(run, records=run.records | {IDS[1]: sure})

    found = describe(run, QUICK).mistakes

    assert [(one.task_id, one.confidence) for one in found] == [
        (IDS[1], 0.99), (IDS[0], 0.75), (IDS[2], 0.75),
    ]  # fmt: skip
    assert found[0].predicted == "no"
    assert compare([run, finished(tmp_path / "b", TASKS)], QUICK).mistakes == []


def test_without_tasks_the_brier_score_is_the_summarys_and_has_no_interval(tmp_path: Path) -> None:
    directory = make_run(tmp_path / "a", TASKS, wrong_ids=IDS[:4], counts=counts(40))
    (run,) = describe(read_run(directory, lambda _: None), QUICK).runs

    assert run.estimates["brier_mean"] is not None
    assert run.estimates["brier_mean"].interval is None
    assert run.estimates["brier_mean"].value == summarize(TASKS, directory.records())["brier_mean"]


def without_truth(tasks: Sequence[Task], *ids: str) -> list[Task]:
    return [
        task.model_copy(update={"expected": None}) if task.id in ids else task for task in tasks
    ]


def run_of(path: Path, tasks: Sequence[Task], *, failed: str) -> RunDirectory:
    """A run whose answers to all tasks but one are valid; it leaves its summary, and no tasks."""
    directory = RunDirectory.create(path)
    for task in tasks:
        valid = record(task, correct=None if task.gold is None else True)
        directory.append(failure(task) if task.id == failed else valid)
    directory.close()
    directory.write_summary(harness_summary(tasks, directory.records()))
    directory.write_manifest(manifest(path, counts=counts(len(tasks))))
    return directory


@pytest.mark.parametrize(
    ("failed", "unknown", "numbers"),
    [
        # A failure without a truth is recorded as wrong, and yet counts in no score.
        ("t0", ("t0", "t2"), (38, 38)),
        ("t0", ("t1", "t3"), (38, 37)),
        ("t0", (), (40, 39)),
    ],
)
def test_without_tasks_the_scored_ones_are_those_of_the_summary(
    tmp_path: Path, failed: str, unknown: tuple[str, ...], numbers: tuple[int, int]
) -> None:
    tasks = without_truth(TASKS, *unknown)
    directory = run_of(tmp_path / "a", tasks, failed=failed)
    (run,) = describe(read_run(directory, lambda _: None), QUICK).runs
    (known,) = describe(read_run(directory, lambda _: tasks), QUICK).runs
    summary = directory.read_summary()

    assert (run.scored, run.correct) == numbers
    assert summary is not None
    assert (summary.n_scorable, summary.n_correct) == numbers
    assert run.accuracy == known.accuracy
    assert run.families == known.families


def test_without_tasks_the_valid_answer_of_another_run_says_that_there_is_no_truth(
    tmp_path: Path,
) -> None:
    tasks = without_truth(TASKS, "t0")
    failing, valid = (
        read_run(run_of(tmp_path / name, tasks, failed=failed), lambda _: None)
        for name, failed in (("a", "t0"), ("b", "t2"))
    )

    first, second = compare([replace(failing, summary=None), valid], QUICK).runs
    (alone,) = describe(replace(failing, summary=None), QUICK).runs

    assert (first.scored, second.scored) == (39, 39)
    # Without its summary nothing tells a failure without a truth from any other one.
    assert (alone.scored, alone.correct) == (40, 39)


def identity(ftype: str) -> dict[str, object]:
    observed = [{"value": ftype, "source": "file header"}]
    field = {"verdict": "observed_only", "declared": None, "observed": observed}
    size = {"verdict": "declared_only", "declared": 1000, "observed": []}
    fields = {"quantization.ftype": field, "weights.bytes": size}
    return {"verdict": "observed_only", "fields": fields, "findings": [], "notes": []}


def test_identity_fields_that_differ_are_marked_in_every_run(tmp_path: Path) -> None:
    runs = [
        finished(tmp_path / name, TASKS, identity=identity(ftype))
        for name, ftype in (("a", "Q4_K_M"), ("b", "Q8_0"))
    ]
    first, second = compare(runs, QUICK).runs

    assert [(one.name, one.differs) for one in first.identity_fields] == [
        ("quantization.ftype", True),
        ("weights.bytes", False),
    ]
    assert (first.ftype, second.ftype) == ("Q4_K_M", "Q8_0")
    assert first.weights_bytes == 1000


@pytest.mark.parametrize(
    ("caches", "names"),
    [
        (("f16", "q8_0"), ["gemma4_q4km cache_type_k=f16", "gemma4_q4km cache_type_k=q8_0"]),
        # The same settings, and ones that no table has room for.
        (("f16", "f16"), ["gemma4_q4km #1", "gemma4_q4km #2"]),
        (("f16", "a" * 40), ["gemma4_q4km #1", "gemma4_q4km #2"]),
    ],
)
def test_runs_of_one_model_are_told_apart_by_what_was_set_or_by_number(
    tmp_path: Path, caches: tuple[str, str], names: list[str]
) -> None:
    runs = []
    for name, cache in zip("ab", caches, strict=True):
        config = manifest(tmp_path).config.model_dump()
        config["overrides"] = ["dataset=demo", f"backend.server.cache_type_k={cache}"]
        runs.append(finished(tmp_path / name, TASKS, config=config))
    first, second = compare(runs, QUICK).runs

    assert [first.label, second.label] == names
    differing = {"backend.server.cache_type_k": caches[1]} if caches[0] != caches[1] else {}
    assert second.settings == differing


def test_every_two_runs_have_one_cell_and_one_adjusted_p(tmp_path: Path) -> None:
    runs = [finished(tmp_path / str(n), TASKS, IDS[: 4 * n]) for n in range(4)]
    found = compare(runs, QUICK)

    assert [(cell.first, cell.second) for cell in found.matrix] == [
        (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3),
    ]  # fmt: skip
    for cell in found.matrix[:3]:
        assert cell.accuracy == found.pairs[cell.second - 1].difference(ACCURACY)
    last = found.matrix[-1].accuracy
    assert last is not None
    assert last.delta == pytest.approx(-0.1)
    assert last.p_adjusted is not None
    # Accuracy and Brier of three candidates, and the accuracy of three other pairs.
    assert found.tests == 9


def test_a_killed_run_without_a_summary_still_has_numbers(tmp_path: Path) -> None:
    directory = make_run(tmp_path / "a", grouped_tasks(20), counts=counts(40))
    (directory.path / "summary.json").unlink()
    (run,) = describe(read_run(directory, lambda _: grouped_tasks(20)), QUICK).runs

    assert run.estimates["brier_mean"] is not None
    assert run.paraphrases is not None
    assert run.cost_usd == 0
