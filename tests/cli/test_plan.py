"""`jevexp plan` tells what would run, and touches nothing."""

import json
from pathlib import Path

import pytest

from tests.support.cli import jevexp
from tests.support.decision_files import write_decision


def test_a_plan_names_choices_tasks_and_the_worst_case(workplace: Path) -> None:
    done = jevexp("plan", "dataset=demo", "caps.limit=10", cwd=workplace)

    assert done.status == 0, done.err
    for words in ("dataset demo", "model fake (fake)", "identity strict", "$0.20", "$15.00"):
        assert words in done.out
    assert list(workplace.iterdir()) == []


def test_a_sweep_is_planned_run_by_run(workplace: Path) -> None:
    done = jevexp("plan", "-m", "dataset=demo", "model=fake,gemma4_q4km", cwd=workplace)

    assert done.status == 0, done.err
    assert "model fake (fake)" in done.out
    assert "model gemma4_q4km (gemma-4-31b-kv9-q4km-mm)" in done.out
    assert list(workplace.iterdir()) == []


def test_files_that_are_not_here_are_counted_and_not_fetched(workplace: Path) -> None:
    done = jevexp("plan", "dataset=public", cwd=workplace, JEVEXP_CACHE=str(workplace / "cache"))

    assert done.status == 0, done.err
    cells = next(line for line in done.out.splitlines() if "dataset public" in line).split()
    assert cells == ["0", "dataset", "public", "231", "231", "$4.62", "$15.00", "3"]
    assert list(workplace.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["dataset=demo", "caps.cap_usd=0.5"],
            "cannot succeed: run 0 reserves $0.96 and the cap leaves $0.50; "
            "raise caps.cap_usd, lower caps.reserve_usd or caps.limit",
        ),
        (
            ["-m", "dataset=demo", "backend.seed=1,2", "caps.cap_usd=1"],
            "cannot succeed: the sweep reserves $1.92 and its cap is $1.00; "
            "raise caps.cap_usd, lower caps.reserve_usd or caps.limit",
        ),
    ],
)
def test_a_plan_that_cannot_succeed_exits_2(
    arguments: list[str], line: str, workplace: Path
) -> None:
    done = jevexp("plan", *arguments, cwd=workplace)

    assert done.status == 2
    assert line in done.out
    assert list(workplace.iterdir()) == []


def test_a_known_price_may_cost_less_than_is_reserved(workplace: Path) -> None:
    done = jevexp("plan", "dataset=demo", "caps.cap_usd=0.5", "pricing=local", cwd=workplace)

    assert done.status == 0


def test_a_shared_ledger_counts_with_what_it_was_charged(workplace: Path) -> None:
    shared = ("dataset=demo", "tracking=none", "caps=shared", "caps.cap_usd=1")
    jevexp(*shared, "caps.limit=10", cwd=workplace)
    ledger = workplace / "outputs/ledger.jsonl"
    before = ledger.read_bytes()

    done = jevexp("plan", *shared, cwd=workplace)

    assert done.status == 2
    assert "run 0 reserves $0.96 and the cap leaves $0.80" in done.out
    assert ledger.read_bytes() == before


def test_a_mistake_is_one_line(workplace: Path) -> None:
    done = jevexp("plan", "dataset=nope", cwd=workplace)

    assert done.status == 2
    assert done.err.startswith("error: dataset=nope: no such option; choose one of: demo, ")


def test_tasks_that_a_decision_model_refuses_are_named(workplace: Path) -> None:
    gguf = write_decision(workplace / "lev.gguf", "lev")
    tasks = workplace / "tasks.jsonl"
    served = (
        "backend=llama_cpp",
        f"backend.server.gguf={gguf}",
        "model=unclaimed",
        "model.alias=m",
    )
    command = ("plan", "dataset=local", f"dataset.path={tasks}", *served)

    tasks.write_text(choice_task("few", 26) + choice_task("many", 27))
    done = jevexp(*command, cwd=workplace)
    assert done.status == 0, done.err
    assert "warning: run 0: 1 of 2 tasks cannot be asked: many (27 options" in done.out

    tasks.write_text(choice_task("many", 27))
    refused = jevexp(*command, cwd=workplace)
    assert refused.status == 2
    assert "dataset: 1 of 1 tasks cannot be asked: many (27 options; a model of" in refused.err
    assert {path.name for path in workplace.iterdir()} == {"lev.gguf", "tasks.jsonl"}


def choice_task(name: str, options: int) -> str:
    labels = [f"option {number}" for number in range(options)]
    question = {"type": "choice", "instructions": "Which?", "criteria": dict.fromkeys(labels)}
    fields = {"id": name, "family": "f", "split": "public", "state": "s", "question": question}
    return json.dumps({**fields, "labels": labels, "expected": labels[0]}) + "\n"
