"""`jevexp check` asks a few real questions and leaves nothing; live checks are in tests/live."""

import json
from pathlib import Path

from tests.support.cli import jevexp


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
