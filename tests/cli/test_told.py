"""What answers say of themselves, through a whole run: cut states, reported costs, two wires."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jevexp.analysis.conditions import remarks
from jevexp.analysis.runs import read_run
from jevexp.store import RunDirectory
from jevexp.tracking.mlflow.labels import metrics
from jevexp.verification import State, verify_run
from tests.support.cli import Finished, jevexp
from tests.support.forgery import edit, edit_line, edit_raw, lines, reseal
from tests.support.scripted_llama import Answer
from tests.support.systemone import (
    DECISIONS,
    ENDPOINT,
    respond,
    respond_with_decisions,
    scripted_decision_service,
    scripted_systemone,
)

CUT = {"truncated": True, "state_tokens_dropped": 150_000}


def run(url: str, backend: str, *overrides: str, cwd: Path) -> Finished:
    """Six demo tasks at a scripted service."""
    return jevexp(
        "dataset=demo", "caps.limit=6", "tracking=none", "model=unclaimed", "model.alias=m-1",
        f"backend={backend}", "backend.key_env=null", f"backend.base_url={url}",
        "hydra.run.dir=run", *overrides, cwd=cwd,
    )  # fmt: skip


def with_usage(usage: Callable[[int], dict[str, Any]]) -> Callable[[Any], Answer]:
    """A service whose nth answer, from 0 on, reports this beside its tokens."""
    count = iter(range(1000))

    def behave(body: Any) -> Answer:
        answer = respond(body).body
        answer["usage"] |= usage(next(count))
        return Answer(answer)

    return behave


def test_cut_states_are_counted_and_told_everywhere(workplace: Path) -> None:
    with scripted_systemone() as service:
        service.answers[ENDPOINT] = with_usage(lambda number: CUT if number % 3 == 0 else {})
        done = run(service.url, "systemone", cwd=workplace)
    assert done.status == 0
    words = "the service cut the state of 2 of 6 answered tasks"
    assert f"  warning: {words}" in done.out.splitlines()
    directory = RunDirectory(workplace / "run")
    manifest = directory.read_manifest()
    assert manifest.counts.truncated == 2
    assert metrics(manifest, directory.read_summary())["truncated"] == 2
    finished = read_run(directory, lambda _: None)
    said = remarks(finished, finished)
    assert said[:2] == [f"the baseline: {words}", f"the candidate: {words}"]
    assert verify_run(directory.path).state is State.VERIFIED


def test_a_cut_that_is_kept_silent_is_seen(workplace: Path) -> None:
    with scripted_systemone() as service:
        service.answers[ENDPOINT] = with_usage(lambda _: CUT)
        run(service.url, "systemone", cwd=workplace)
    path = workplace / "run"
    edit(path, "manifest.json", lambda manifest: manifest["counts"].update(truncated=0))
    reseal(path)
    assert [failure.message for failure in verify_run(path).check("manifest").failures] == [
        "counts.truncated, by results.jsonl: 0, expected 6"
    ]
    edit_line(path, "results.jsonl", 0, lambda record: record.update(runtime=None))
    reseal(path)
    assert verify_run(path).check("answers").failed


def test_a_run_without_cut_states_says_nothing_of_them(workplace: Path) -> None:
    with scripted_systemone() as service:
        done = run(service.url, "systemone", cwd=workplace)
    directory = RunDirectory(workplace / "run")
    assert "cut" not in done.out
    assert "truncated" not in metrics(directory.read_manifest(), directory.read_summary())


def test_a_reported_cost_is_what_is_charged(workplace: Path) -> None:
    with scripted_systemone() as service:
        # The last answer tells none, and costs its reservation.
        service.answers[ENDPOINT] = with_usage(lambda n: {"cost": 0.00002} if n < 5 else {})
        done = run(service.url, "systemone", "pricing=reported", cwd=workplace)
    assert done.status == 0, done.out
    records = lines(workplace / "run", "results.jsonl")
    assert [record["charged_usd"] for record in records] == [0.00002] * 5 + [0.02]
    assert [record["cost_usd"] for record in records] == [0.00002] * 5 + [None]
    assert {record["cost_basis"] for record in records} == {"reported_by_provider"}
    manifest = RunDirectory(workplace / "run").read_manifest()
    assert manifest.ledger.charged_by_run_usd == pytest.approx(0.0201)
    assert verify_run(workplace / "run").state is State.VERIFIED


def test_a_cost_above_the_reservation_ends_the_run(workplace: Path) -> None:
    with scripted_systemone() as service:
        service.answers[ENDPOINT] = with_usage(lambda n: {"cost": 0.03 if n == 1 else 0.001})
        done = run(service.url, "systemone", "pricing=reported", cwd=workplace)
    assert done.status == 1
    assert "stopped: overcharged" in done.out


def test_a_price_that_is_set_excludes_the_reported_one(workplace: Path) -> None:
    done = run(
        "http://127.0.0.1:9", "systemone", "pricing=reported", "pricing.input_per_m=1",
        cwd=workplace,
    )  # fmt: skip
    assert done.status == 2
    assert done.err.startswith("error: pricing.basis: reported_by_provider goes with no price")


def test_a_run_by_openai_s_wire_verifies_and_a_forged_request_does_not(workplace: Path) -> None:
    with scripted_decision_service() as service:
        done = run(f"{service.url}/v1", "decisions", cwd=workplace)
        assert service.paths() == ["/v1/models", *[DECISIONS] * 6]
    assert done.status == 0, done.out
    path = workplace / "run"
    assert verify_run(path).state is State.VERIFIED

    edit_raw(path, 0, lambda raw: raw["request"]["sent"]["body"].update(input="other"))
    reseal(path)
    assert verify_run(path).check("answers").failed


def test_a_refusal_is_a_failure_of_its_own(workplace: Path) -> None:
    def refuse(body: Any) -> Answer:
        answer = respond_with_decisions(body).body
        if body["questions"][0]["type"] == "predicate":
            answer["answers"][0]["refusal"] = "I would rather not."
        return Answer(answer)

    with scripted_decision_service() as service:
        service.answers[DECISIONS] = refuse
        done = run(service.url, "decisions", cwd=workplace)
    assert done.status == 1
    assert "2 × refused" in done.out
    assert verify_run(workplace / "run").state is State.VERIFIED


def test_an_envelope_is_opened(workplace: Path) -> None:
    with scripted_systemone() as service:
        service.answers["/ai/run/m"] = lambda body: Answer({"result": respond(body).body})
        done = run(
            service.url, "systemone", "backend.path=/ai/run/m", "backend.envelope=/result",
            cwd=workplace,
        )  # fmt: skip
    assert done.status == 0, done.out
    assert verify_run(workplace / "run").state is State.VERIFIED
