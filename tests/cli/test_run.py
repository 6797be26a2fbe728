"""One run from the command line, with the offline provider."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jevexp.cli.verbs import verb_files
from tests.support.cli import jevexp, only_run, start
from tests.support.gated import gated

DEMO = ("dataset=demo", "tracking=none")


def manifest_of(run: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run / "manifest.json").read_text())
    return found


def test_a_complete_run_exits_0_and_leaves_the_benchmarks_artifacts(workplace: Path) -> None:
    done = jevexp(*DEMO, cwd=workplace)

    assert done.status == 0, done.err
    run = only_run(workplace / "outputs")
    assert {path.name for path in run.iterdir()} == {
        ".hydra",
        "checksums.sha256",
        "ledger.jsonl",
        "manifest.json",
        "raw",
        "results.jsonl",
        "run.log",
        "summary.json",
    }
    assert len((run / "results.jsonl").read_text().splitlines()) == 48
    assert len(list((run / "raw").iterdir())) == 48
    manifest = manifest_of(run)
    assert manifest["status"] == "complete"
    assert manifest["exit_status"] == 0
    assert manifest["counts"] == {
        "requested": 48,
        "attempted": 48,
        "answered": 48,
        "valid": 48,
        "truncated": 0,
    }
    assert "complete: 48 of 48 tasks answered and valid" in done.out
    assert f"run: {run.relative_to(workplace)}" in done.out


def test_checksums_cover_every_file_and_hold(workplace: Path) -> None:
    jevexp(*DEMO, "caps=smoke", cwd=workplace)
    run = only_run(workplace / "outputs")

    listed = {
        line.split("  ", 1)[1] for line in (run / "checksums.sha256").read_text().splitlines()
    }
    present = {str(path.relative_to(run)) for path in run.rglob("*") if path.is_file()}
    assert listed == present - {"checksums.sha256"}
    subprocess.run(
        ["sha256sum", "--check", "--quiet", "checksums.sha256"], cwd=run, check=True, timeout=60
    )


def test_a_reached_cap_exits_1_and_the_manifest_says_why(workplace: Path) -> None:
    done = jevexp(*DEMO, "caps.cap_usd=0.05", cwd=workplace)

    assert done.status == 1
    manifest = manifest_of(only_run(workplace / "outputs"))
    assert manifest["stop_reason"] == "cap_reached"
    assert manifest["status"] == "incomplete"
    counts = {"requested": 48, "attempted": 2, "answered": 2, "valid": 2, "truncated": 0}
    assert manifest["counts"] == counts
    assert "incomplete: 2 of 48 tasks answered and valid, 2 attempted; stopped: cap reached" in (
        done.out
    )


def test_failures_exit_1_and_are_counted_by_kind(workplace: Path) -> None:
    script = [{"error": "timeout"}] * 3
    (workplace / "script.json").write_text(json.dumps(script))

    done = jevexp(*DEMO, "backend.mode=script", "backend.script=script.json", cwd=workplace)

    assert done.status == 1
    assert "stopped: failures in a row" in done.out
    assert "3 × timeout" in done.out


def test_a_ledger_that_outlives_runs_is_shared_by_them(workplace: Path) -> None:
    arguments = (*DEMO, "caps=shared", "caps.cap_usd=0.10")

    first = jevexp(*arguments, "caps.limit=3", cwd=workplace)
    second = jevexp(*arguments, "caps.limit=3", cwd=workplace)

    assert (first.status, second.status) == (0, 1)
    rows = [
        json.loads(line) for line in (workplace / "outputs/ledger.jsonl").read_text().splitlines()
    ]
    assert sum(row["event"] == "cap" for row in rows) == 1
    assert sum(row["event"] == "reserve" for row in rows) == 5


def test_gold_reaches_no_raw_evidence(workplace: Path) -> None:
    jevexp(*DEMO, "backend.mode=noise", cwd=workplace)
    raw = only_run(workplace / "outputs") / "raw"

    for path in raw.iterdir():
        request = json.loads(path.read_text())["request"]
        assert set(request) == {"state", "model", "questions"}
        assert set(request["questions"]["decision"]) <= {"type", "instructions", "criteria"}


def test_a_persons_own_options_come_from_config_dir(workplace: Path) -> None:
    option = workplace / "mine/backend/slow.yaml"
    option.parent.mkdir(parents=True)
    option.write_text("defaults:\n  - fake\nname: slow\nlatency_s: 0.001\n")

    done = jevexp(*DEMO, "caps=smoke", "--config-dir", "mine", "backend=slow", cwd=workplace)

    assert done.status == 0, done.err
    assert only_run(workplace / "outputs").name.endswith("demo-fake-slow")


def test_two_starts_in_the_same_second_have_two_directories(workplace: Path) -> None:
    both = [start(*DEMO, "caps=smoke", cwd=workplace) for _ in range(2)]
    for process in both:
        process.communicate(timeout=60)

    assert [process.returncode for process in both] == [0, 0]
    assert len(list(workplace.glob("outputs/20*/*/checksums.sha256"))) == 2


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_run_with_its_evidence_kept(
    signum: signal.Signals, status: int, workplace: Path
) -> None:
    overrides, gate = gated(workplace, task=3)
    process = start(*DEMO, *overrides, cwd=workplace)
    wait_for(process, gate.is_reached)
    process.send_signal(signum)
    process.communicate(timeout=120)

    assert process.returncode == status
    check_interrupted(workplace, status)


def test_ctrl_c_finishes_the_task_in_flight_and_says_how_to_end_at_once(workplace: Path) -> None:
    overrides, gate = gated(workplace, task=2)
    process = start(*DEMO, *overrides, cwd=workplace)
    wait_for(process, gate.is_reached)
    process.send_signal(signal.SIGINT)
    wait_for_line(process, "Ctrl-C again ends at once")
    gate.open()
    process.communicate(timeout=60)

    assert process.returncode == 130
    run = check_interrupted(workplace, 130)
    ledger = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    assert [row["event"] for row in ledger] == ["cap", *["reserve", "settle"] * 2]
    assert len((run / "results.jsonl").read_text().splitlines()) == 2


def test_ctrl_c_twice_ends_at_once_and_the_task_in_flight_stays_reserved(workplace: Path) -> None:
    overrides, gate = gated(workplace, task=1)
    process = start(*DEMO, *overrides, cwd=workplace)
    wait_for(process, gate.is_reached)
    process.send_signal(signal.SIGINT)
    # Two that arrive together would be one.
    wait_for_line(process, "Ctrl-C again ends at once")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert process.returncode == 130
    (run,) = workplace.glob("outputs/20*/*")
    manifest = manifest_of(run)
    assert (manifest["status"], manifest["exit_status"]) == ("interrupted", 130)
    assert (run / "results.jsonl").read_bytes() == b""
    assert "settle" not in ledger_of(workplace)
    assert (run / "checksums.sha256").is_file()


def ledger_of(workplace: Path) -> str:
    return "".join(path.read_text() for path in workplace.glob("outputs/20*/*/ledger.jsonl"))


def wait_for_line(process: "subprocess.Popen[str]", words: str) -> None:
    assert process.stdout is not None
    assert any(words in line for line in iter(process.stdout.readline, ""))


def wait_for(process: "subprocess.Popen[str]", condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def check_interrupted(workplace: Path, status: int) -> Path:
    """An interrupted run's files agree with each other; returns its directory."""
    run = only_run(workplace / "outputs")
    manifest = manifest_of(run)
    assert manifest["status"] == "interrupted"
    assert manifest["exit_status"] == status
    counts = manifest["counts"]
    assert isinstance(counts, dict)
    assert 0 < counts["attempted"] < 48
    assert counts["attempted"] == len((run / "results.jsonl").read_text().splitlines())
    assert (run / "checksums.sha256").is_file()
    return run


@pytest.mark.parametrize("flag", [["--help"], ["--cfg", "job"], ["--info", "config"]])
def test_showing_writes_nothing(flag: list[str], workplace: Path) -> None:
    done = jevexp(*flag, cwd=workplace)

    assert done.status == 0
    assert "dataset" in done.out
    assert list(workplace.iterdir()) == []


def test_the_shell_completes_groups_and_fields(workplace: Path) -> None:
    def completed(words: str) -> str:
        done = jevexp(
            "-sc", "query=bash", cwd=workplace, COMP_LINE=words, COMP_POINT=str(len(words))
        )
        return done.out.strip()

    assert completed("jevexp backend=fa") == "backend=fake"
    assert completed("jevexp caps.li") == "caps.limit="


def test_help_names_verbs_groups_and_exit_statuses(workplace: Path) -> None:
    out = jevexp("--help", cwd=workplace).out

    for words in (
        "data pull",
        "export RUN",
        "backend: cloudflare, decisions, fake, ",
        "Exit status: 0",
    ):
        assert words in out
    for verb in verb_files():
        assert f"\n  {verb} " in out or f"\n  {verb}\n" in out


@pytest.mark.parametrize("verb", [verb for verb in verb_files() if verb != "run"])
def test_every_verb_has_its_own_help(verb: str, workplace: Path) -> None:
    done = jevexp(verb, "--help", cwd=workplace)

    assert done.status == 0, done.err
    assert done.out.startswith(f"usage: jevexp {verb}")
    assert list(workplace.iterdir()) == []


def test_several_requests_at_once_are_in_names_manifest_and_fingerprint(workplace: Path) -> None:
    one = jevexp(*DEMO, cwd=workplace)
    alone = only_run(workplace / "outputs")
    done = jevexp(*DEMO, "runner.concurrency=4", "outputs=several", cwd=workplace)
    assert (one.status, done.status) == (0, 0), done.err
    run = only_run(workplace / "several")
    assert run.name.endswith("-demo-fake-fake-c4")
    assert "demo · fake · fake · ×4" in done.out
    assert "latencies under 4 requests at once" in done.out
    manifest = manifest_of(run)
    assert (manifest["concurrency"], manifest_of(alone)["concurrency"]) == (4, 1)
    assert manifest["fingerprint"] != manifest_of(alone)["fingerprint"]
    assert task_ids(run) == task_ids(alone)


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["harness=upstream"], "runner.concurrency: the pinned harness asks one task at a time"),
        (
            ["backend.mode=script", "backend.script=script.json"],
            "runner.concurrency: fake takes 1 request at a time, found 4; set runner.concurrency=1",
        ),
    ],
)
def test_who_cannot_be_asked_several_things_at_once_is_not(
    workplace: Path, overrides: list[str], line: str
) -> None:
    (workplace / "script.json").write_text("[]")
    done = jevexp(*DEMO, "runner.concurrency=4", *overrides, cwd=workplace)
    assert done.status == 2
    assert done.err.startswith(f"error: {line}")
    assert not (workplace / "outputs").exists()


def task_ids(run: Path) -> list[str]:
    lines = (run / "results.jsonl").read_text().splitlines()
    return [json.loads(line)["task_id"] for line in lines]
