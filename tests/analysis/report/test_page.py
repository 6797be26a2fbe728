"""The page says what the JSON says, all of it and nothing else."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jevexp.analysis.compare import compare, describe
from jevexp.analysis.comparison import Comparison
from jevexp.analysis.estimates import Options
from jevexp.analysis.metrics import METRICS
from jevexp.analysis.plots import plots
from jevexp.analysis.report.page import render
from jevexp.analysis.runs import FinishedRun
from jevexp.core.json import dumps
from jevexp.core.task import Task
from tests.analysis.made import Compared, compared, demo_tasks, sampled
from tests.analysis.report.reading import PageReader, look_up, written

QUICK = Options(draws=200)


def page_of(comparison: Comparison, runs: list[FinishedRun], *, drawn: bool = False) -> str:
    """The page; without its plots where nothing looks at them."""
    found = plots(comparison) if drawn else {}
    return render(comparison, runs, found, data="plots")


def read(made: Compared) -> tuple[PageReader, Any]:
    reader = PageReader(page_of(made.comparison, made.runs))
    return reader, json.loads(dumps(made.comparison.plain()))


@pytest.fixture(scope="module")
def drawn_page(two_runs: Compared) -> str:
    """The page of two runs with its plots."""
    return page_of(two_runs.comparison, two_runs.runs, drawn=True)


@pytest.mark.parametrize("several", ["two_runs", "five_runs"])
def test_every_number_is_the_one_in_the_json(several: str, request: pytest.FixtureRequest) -> None:
    reader, document = read(request.getfixturevalue(several))

    assert len(reader.numbers) > 150
    for number in reader.numbers:
        exact = look_up(document, number.at)
        assert json.loads(number.value) == exact, number
        if (said := written(number.text)) is None:
            assert exact < 0.001
        else:
            value, half = said
            assert abs(value - exact * number.scale) <= half * 1.0001, number


def test_no_number_is_written_without_its_place(two_runs: Compared) -> None:
    reader, _ = read(two_runs)

    # Names of the runs have no digit; these parts quote tasks, files and versions.
    allowed = re.compile(
        r"95 %|80 %|per 1000|p50, p95|0 to 1|[12] runs?$|\(\d+( of \d+)?\)$|^Q2_K$"
    )
    found = [
        text
        for text in reader.outside("style", "title", "svg", "#flips", "#identity", "#method")
        if re.search(r"\d", allowed.sub("", text))
    ]
    assert found == []


def test_the_headline_metrics_of_every_pair_are_there(five_runs: Compared) -> None:
    reader, document = read(five_runs)

    places = {number.at for number in reader.numbers}
    for index, pair in enumerate(document["pairs"]):
        for place, metric in enumerate(pair["metrics"]):
            at = f"/pairs/{index}/metrics/{place}"
            assert f"{at}/delta" in places
            assert {f"{at}/interval/0", f"{at}/interval/1"} <= places
            if metric["verdict"] == "inconclusive":
                assert f"{at}/tasks_needed" in places
    for index, run in enumerate(document["runs"]):
        for name in METRICS:
            assert f"/runs/{index}/{name}/value" in places
        for place, family in enumerate(run["families"]):
            assert family["accuracy"] is None or f"/runs/{index}/families/{place}/correct" in places
    for index in range(len(document["matrix"])):
        assert f"/matrix/{index}/accuracy/delta" in places


def test_the_plots_say_the_same_numbers(two_runs: Compared, drawn_page: str) -> None:
    bold = set(re.findall(r'<text[^>]*font-weight="(?:bold|700)"[^>]*>([^<]*)<', drawn_page))
    for run in two_runs.comparison.runs:
        for name in METRICS:
            estimate = run.estimates[name]
            assert estimate is not None
            assert f"{estimate.value:.3f}" in bold
    for metric in two_runs.comparison.pairs[0].metrics:
        assert f"{metric.delta:+.3f}".replace("-", "\u2212") in bold


@pytest.mark.parametrize(
    ("skills", "said"),
    [
        ((0.1, 0.99), "Yes, in accuracy"),
        ((0.99, 0.1), "No, it is worse in accuracy"),
        ((0.5, 0.5), "These tasks cannot tell"),
    ],
)
def test_the_answer_comes_first(skills: tuple[float, float], said: str) -> None:
    made = compared(demo_tasks(), *skills)

    reader = PageReader(page_of(made.comparison, made.runs))

    assert said in " ".join(reader.outside("style", "main"))


def test_equal_runs_are_called_equally_accurate() -> None:
    tasks = [
        task.model_copy(update={"id": f"{task.id}/{copy}", "group": f"{task.group}/{copy}"})
        for copy in range(5)
        for task in demo_tasks()
    ]
    runs = [sampled(Path(f"/runs/{name}"), tasks, skill=0.9, seed=1, name=name) for name in "ab"]
    comparison = compare(runs, QUICK)

    reader = PageReader(page_of(comparison, runs))

    assert "Neither: equally accurate" in list(reader.outside("style", "main"))


def test_a_flip_shows_the_task_and_both_distributions(two_runs: Compared) -> None:
    reader, document = read(two_runs)
    tasks = two_runs.runs[0].tasks or {}
    flip = document["pairs"][0]["flips"][0]
    task = tasks[flip["task_id"]]

    said = {text for place, text in reader.texts if "#flips" in place.split()}
    assert {flip["task_id"], task.family, task.question.instructions} <= said
    places = {number.at for number in reader.numbers}
    for side in ("baseline", "candidate"):
        for label in task.labels:
            pointer = label.replace("~", "~0").replace("/", "~1")
            assert f"/pairs/0/flips/0/{side}/{pointer}" in places
    assert "✓ right" in said


def test_without_the_tasks_ids_and_distributions_are_left(two_runs: Compared) -> None:
    runs = [replace(run, tasks=None) for run in two_runs.runs]
    comparison = compare(runs, QUICK)

    reader = PageReader(page_of(comparison, runs))

    said = [text for place, text in reader.texts if "#flips" in place.split()]
    assert "The tasks are not on this machine" in said
    assert comparison.pairs[0].flips[0].task_id in said


def test_more_flips_than_a_page_holds_are_counted() -> None:
    tasks = [
        task.model_copy(update={"id": f"{task.id}/{copy}"})
        for copy in range(6)
        for task in demo_tasks()
    ]
    made = compared(tasks, 0.1, 0.9)
    total = len(made.comparison.pairs[0].flips)

    reader, _ = read(made)

    shown = sum(tag == "details" and at.get("class") == "flip" for tag, at in reader.tags)
    assert 30 <= shown <= 60 < total
    assert f"{total - shown} more flips are in" in [text for _, text in reader.texts]


def test_one_run_has_a_page_of_its_own(two_runs: Compared) -> None:
    run = two_runs.runs[0]
    comparison = describe(run, QUICK)

    reader = PageReader(page_of(comparison, [run], drawn=True))

    ids = {at.get("id") for tag, at in reader.tags if tag == "section"}
    assert {"runs", "families", "calibration", "cost", "mistakes", "identity", "method"} <= ids
    assert ids.isdisjoint({"verdicts", "pairs", "flips"})
    document = json.loads(dumps(comparison.plain()))
    places = {number.at: number.value for number in reader.numbers}
    for index, mistake in enumerate(document["mistakes"][:30]):
        assert places[f"/mistakes/{index}/confidence"] == json.dumps(mistake["confidence"])


def test_differing_fields_are_marked_and_equal_ones_are_not(two_runs: Compared) -> None:
    page = page_of(two_runs.comparison, two_runs.runs)

    marked = re.findall(r'<tr class="differs"><th scope="row">([^<]*)<', page)
    assert "directory" in marked
    assert "backend" not in marked
    assert '<th scope="row">backend</th>' in page


def test_a_contradiction_and_a_remark_are_said(tmp_path: Path) -> None:
    fields: Mapping[str, Any] = {
        "weights.sha256": {
            "verdict": "contradicted",
            "declared": "aa",
            "observed": [{"value": "bb", "source": "file bytes"}],
        }
    }
    identity = {"verdict": "contradicted", "fields": fields, "findings": [], "notes": []}
    tasks = demo_tasks()
    runs = [
        sampled(tmp_path / name, tasks, skill=0.5, seed=1, name=name, identity=given)
        for name, given in (("a", None), ("b", identity))
    ]

    page = page_of(compare(runs, QUICK), runs)

    assert "the identity of the candidate is contradicted" in page
    assert '<td class="contradicted">bb<small>declared aa</small></td>' in page


def test_the_command_makes_the_page_again(two_runs: Compared) -> None:
    page = page_of(two_runs.comparison, two_runs.runs)

    assert (
        "jevexp compare /runs/alpha /runs/beta --alpha=0.05 --margin=0.02 --draws=200 --seed=0 "
        "--html" in page
    )


def test_nothing_is_loaded_and_nothing_can_run(drawn_page: str) -> None:
    reader = PageReader(drawn_page)

    assert {tag for tag, _ in reader.tags}.isdisjoint({"script", "link", "img", "iframe", "object"})
    for _, attributes in reader.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "http" not in re.sub(r'http-equiv|xmlns="[^"]*"', "", drawn_page)
    (policy,) = [at["content"] for tag, at in reader.tags if "http-equiv" in at and tag == "meta"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_the_same_comparison_gives_the_same_page(two_runs: Compared, drawn_page: str) -> None:
    assert page_of(two_runs.comparison, two_runs.runs, drawn=True) == drawn_page


def test_tables_and_sections_can_be_found_without_seeing_them(five_runs: Compared) -> None:
    reader, _ = read(five_runs)

    tags = [tag for tag, _ in reader.tags]
    assert tags.count("table") == tags.count("caption")
    assert tags.count("h1") == 1
    ids = {at["id"] for _, at in reader.tags if "id" in at}
    for tag, attributes in reader.tags:
        if tag == "section":
            assert attributes["aria-labelledby"] in ids
        if tag == "th":
            assert attributes["scope"] in ("col", "row")
        if tag == "a":
            assert (attributes["href"] or "")[1:] in ids


@pytest.fixture(scope="module")
def harmless(drawn_page: str) -> PageReader:
    return PageReader(drawn_page)


def hostile_task(task: Task, text: str) -> Task:
    return task.model_copy(
        update={
            "id": f"{text}{task.id}",
            "family": f"{text}{task.family}",
            "state": {text: [text]},
            "question": task.question.model_copy(update={"instructions": text}),
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"onload="alert(1)',
        "'onmouseover='alert(1)",
        "{{7*7}}{% raw %}",
        "</style></title></textarea><svg/onload=alert(1)>",
        "javascript:alert(1)",
        "a\u202eb\u2066c\x00\x1b[31m\x7f",
        "&lt;b&gt;&amp;",
        "]]><!--",
    ],
)
def test_text_from_strangers_is_only_text(text: str, harmless: PageReader) -> None:
    tasks = [hostile_task(task, text) for task in demo_tasks()]
    runs = [
        sampled(Path("/runs") / name, tasks, skill=skill, seed=1, name=f"{text}{name}")
        for name, skill in (("a", 0.1), ("b", 0.9))
    ]

    comparison = compare(runs, QUICK)
    page = page_of(comparison, runs, drawn="<script" in text or "\u202e" in text)

    reader = PageReader(page)
    assert {tag for tag, _ in reader.tags} <= {tag for tag, _ in harmless.tags}
    names = {name for _, attributes in harmless.tags for name in attributes}
    assert {name for _, attributes in reader.tags for name in attributes} <= names
    for hidden in "\u202e\u2066\x00\x1b\x7f":
        assert hidden not in page
    assert "49" not in [part for _, part in reader.texts]
    shown = text.encode("unicode_escape").decode() if "\u202e" in text else text
    assert any(shown in part for place, part in reader.texts if "#flips" in place.split())


FAILED = {"ok": False, "valid": False, "correct": False, "predicted": None, "probs": None}


@pytest.mark.parametrize(
    "changed",
    [FAILED, FAILED | {"correct": None}, {"latency_s": 0.0}, None],
    ids=["nothing but failures", "nothing scored", "no time", "nothing asked"],
)
def test_a_run_without_anything_to_show_has_a_page(
    changed: dict[str, Any] | None, two_runs: Compared
) -> None:
    first, second = two_runs.runs
    records = {
        task_id: replace(answer, **changed)
        for task_id, answer in second.records.items()
        if changed is not None
    }
    runs = [first, replace(second, records=records, summary=None)]

    for comparison, shown in (
        (compare(runs, QUICK), runs),
        (describe(runs[1], QUICK), runs[1:]),
    ):
        # The one run has next to nothing to draw.
        reader = PageReader(page_of(comparison, shown, drawn=len(shown) == 1))
        assert "#method" in {part for place, _ in reader.texts for part in place.split()}
