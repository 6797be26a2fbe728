"""`jevexp check` asks a few real questions and leaves nothing; live checks are in tests/live."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.cli import jevexp
from tests.support.scripted_llama import Answer
from tests.support.systemone import ENDPOINT, respond, scripted_systemone


def test_a_run_that_can_start_is_ready(workplace: Path) -> None:
    done = jevexp("check", "dataset=demo", cwd=workplace)

    assert done.status == 0, done.err
    lines = done.out.splitlines()
    checks = [line.split()[:2] for line in lines if line.startswith("ok")]
    assert checks == [
        ["ok", name]
        for name in (
            "caps",
            "dataset",
            "provider",
            "identity",
            "noul",
            "choice",
            "score",
            "tracking",
        )
    ]
    assert lines[-1] == "ready"
    assert list(workplace.iterdir()) == []


def test_a_cap_that_is_too_low_is_not_ready(workplace: Path) -> None:
    done = jevexp("check", "dataset=demo", "caps.cap_usd=0.5", cwd=workplace)

    assert done.status == 2
    assert "failed  caps      reserves $0.96, the cap leaves $0.50" in done.out
    assert done.out.splitlines()[-1] == "not ready: see above"


def test_an_answer_that_is_a_failure_is_not_ready(workplace: Path) -> None:
    script = [{"error": "http_error", "status_code": 503}, *[{"error": "timeout"}] * 2]
    (workplace / "script.json").write_text(json.dumps(script))

    done = jevexp(
        "check", "dataset=demo", "backend.mode=script", "backend.script=script.json", cwd=workplace
    )

    assert done.status == 1
    assert "failed  noul      http_error (HTTP 503)" in done.out
    assert "failed  choice    timeout" in done.out


def test_a_tracker_that_is_down_is_a_warning(workplace: Path) -> None:
    done = jevexp("check", "dataset=demo", "tracking.uri=http://127.0.0.1:9", cwd=workplace)

    assert done.status == 0
    assert "warning tracking  http://127.0.0.1:9: cannot be reached" in done.out
    assert done.out.splitlines()[-1] == "ready, with 1 warnings"


def test_a_server_that_is_down_is_one_line(workplace: Path) -> None:
    done = jevexp(
        "check",
        "dataset=demo",
        "backend=llama_cpp",
        "backend.server.base_url=http://127.0.0.1:9",
        cwd=workplace,
    )

    assert done.status == 2
    assert done.err.startswith("error: backend.server.base_url: http://127.0.0.1:9 is not usable")
    assert list(workplace.iterdir()) == []


def test_a_sweep_is_for_plan(workplace: Path) -> None:
    done = jevexp("check", "-m", "dataset=demo", "backend.seed=1,2", cwd=workplace)

    assert done.status == 2
    assert "one run at a time; `jevexp plan -m …` looks at a whole sweep" in done.err


def to(url: str, *overrides: str) -> tuple[str, ...]:
    """A check of a System One service."""
    return (
        "check", "dataset=demo", "backend=systemone", "backend.key_env=null", "tracking=none",
        f"backend.base_url={url}", "model=unclaimed", "model.alias=scripted-1.0", *overrides,
    )  # fmt: skip


def lines_of(out: str) -> dict[str, str]:
    """What is said of each check, with the word before it."""
    words = [line.split(maxsplit=2) for line in out.splitlines()]
    return {line[1]: f"{line[0]}: {line[2]}" for line in words if len(line) == 3}


def changed(change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Callable[[Any], Answer]:
    """A service whose body and answer are changed before they are sent."""

    def behave(body: Any) -> Answer:
        answer = respond(body).body
        change(answer, answer["answers"]["decision"])
        return Answer(answer)

    return behave


def test_a_service_that_rounds(workplace: Path) -> None:
    def rounded(_body: dict[str, Any], decision: dict[str, Any]) -> None:
        if "probabilities" in decision:
            names = list(decision["probabilities"])
            shares = [0.01 + 0.01 * at for at in range(1, len(names))]
            shares.append(round(1 - sum(shares), 2))
            decision["probabilities"] = dict(zip(names, shares, strict=True))

    with scripted_systemone() as server:
        whole = jevexp(*to(server.url), cwd=workplace)
        server.answers[ENDPOINT] = changed(rounded)
        done = jevexp(*to(server.url), cwd=workplace)
    assert "rounding" not in lines_of(whole.out)
    assert lines_of(whole.out)["provider"] == f"ok: {server.url} names its model in each answer"
    assert whole.out.splitlines()[-1] == "ready"
    assert done.status == 0
    expected = "warning: the service rounds probabilities to two decimals"
    assert lines_of(done.out)["rounding"].startswith(expected)
    assert done.out.splitlines()[-1] == "ready, with 1 warnings"


def test_a_service_without_a_legend(workplace: Path) -> None:
    with scripted_systemone() as server:
        server.answers[ENDPOINT] = changed(lambda _, decision: decision.pop("legend", None))
        done = jevexp(*to(server.url), cwd=workplace)
    assert done.status == 1
    assert lines_of(done.out)["score"] == (
        "failed: bad_answer_legend (HTTP 200); the service sends no legend: it cannot be asked "
        "score tasks"
    )


def test_a_service_that_does_not_say_how_many_tokens_it_took(workplace: Path) -> None:
    prices = ("pricing.input_per_m=1", "pricing.output_per_m=2", "caps.reserve_usd=0.01")
    with scripted_systemone() as server:
        whole = jevexp(*to(server.url, *prices), cwd=workplace)
        server.answers[ENDPOINT] = changed(lambda body, _: body.pop("usage"))
        done = jevexp(*to(server.url, *prices), cwd=workplace)
        free = jevexp(*to(server.url), cwd=workplace)
    assert lines_of(done.out)["usage"] == (
        "warning: the service does not say how many tokens it took: each task is charged the whole "
        "reservation of $0.01"
    )
    assert "usage" not in lines_of(whole.out) | lines_of(free.out)


def test_an_alias_that_another_model_answers(workplace: Path) -> None:
    with scripted_systemone() as server:
        done = jevexp(*to(server.url, "model.alias=latest"), cwd=workplace)
    expected = "warning: latest is asked, scripted-1.0 answers, which the service may change"
    assert lines_of(done.out)["model"] == expected


def test_a_cause_comes_with_what_to_do(workplace: Path) -> None:
    with scripted_systemone() as server:
        server.answers[ENDPOINT] = Answer({"error": {"message": "no such model"}}, status=404)
        done = jevexp(*to(server.url), cwd=workplace)
    assert lines_of(done.out)["noul"] == (
        "failed: http_error (HTTP 404: no such model); set model.alias to a model that it has"
    )
