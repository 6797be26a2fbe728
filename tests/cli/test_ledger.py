"""`jevexp ledger`, with a run that is killed while it waits for an answer."""

import json
import os
import pty
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.main import main
from jevexp.ledger.file import FileLedger
from tests.support.cli import Finished, jevexp, start

WAITING = ("dataset=demo", "backend=fake", "tracking=none", "backend.latency_s=60", "caps.limit=2")
URL = "sqlite:///budget.db"


def verb(*arguments: str) -> Finished:
    """The verb in this process, in the test's working directory."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        status = main(["ledger", *arguments])
    return Finished(status, out.getvalue(), err.getvalue())


def shown(place: str) -> Any:
    done = verb("show", place, "--json")
    assert done.status == 0, done.err
    return json.loads(done.out)


def rows(place: str) -> list[dict[str, Any]]:
    done = verb("export", place)
    assert done.status == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize(
    ("setting", "place"),
    [("caps.ledger=budget.jsonl", "budget.jsonl"), (f"caps.ledger_url={URL}", URL)],
    ids=["file", "database"],
)
def test_what_a_killed_run_reserved_is_released_by_a_person_and_not_before(
    workplace: Path, setting: str, place: str
) -> None:
    with start(*WAITING, setting, cwd=workplace) as run:
        try:
            deadline = time.monotonic() + 60
            while not any(
                path.stat().st_size for path in workplace.glob("outputs/*/*/ledger.jsonl")
            ):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            found = shown(place)
            (one,) = found["open"]
            assert (found["charged_usd"], found["open_usd"], one["usd"]) == (0.02, 0.02, 0.02)
            assert (one["pid"], one["alive"], one["adapter"]) == (run.pid, True, "fake")
            assert one["task_id"] == "demo-adequacy-1-a"
            assert Path(one["run"]).is_dir()
            early = verb("release", place, one["reservation_id"], "--yes")
            assert early.status == 2
            assert f"process {run.pid} on " in early.err
            assert "is alive" in early.err
        finally:
            run.kill()
            run.wait()
    listed = verb("show", place, "--open")
    assert "reservations: 1, open: 1 ($0.02)" in listed.out
    assert "dead" in listed.out
    nobody = verb("release", place, one["reservation_id"])
    assert (nobody.status, shown(place)["charged_usd"]) == (2, 0.02)
    assert "give --yes" in nobody.err

    name = one["reservation_id"][:8]
    done = verb("release", place, name, "--yes", "--reason", "night")

    assert done.status == 0, done.err
    assert "released: 1, $0.02 given back" in done.out
    after = shown(place)
    assert (after["charged_usd"], after["open"]) == (0.0, [])
    last = rows(place)[-1]
    assert (last["event"], last["reservation_id"]) == ("settle", one["reservation_id"])
    assert (last["charged_usd"], last["meta"]["basis"]) == (0.0, "released")
    assert last["meta"]["task_id"] == "demo-adequacy-1-a"
    assert last["meta"]["reason"] == "night"
    assert "@" in last["meta"]["released_by"]
    again = verb("release", place, name, "--yes")
    assert again.status == 2
    assert "no open reservation of this name" in again.err


@pytest.fixture
def ledger(workplace: Path) -> Path:
    path = workplace / "ledger.jsonl"
    with FileLedger(path, 1.0) as made:
        made.settle(made.reserve(0.5, {"task_id": "a", "adapter": "x"}), 0.25, {"task_id": "a"})
        made.reserve(0.125, {"task_id": "\x1b[31mred", "adapter": "x"})
    return path


def test_a_ledger_is_shown_and_exported(ledger: Path, workplace: Path) -> None:
    done = verb("show", "ledger.jsonl", "--open")
    assert "cap $1, charged $0.375, left $0.625" in done.out
    assert "reservations: 2, open: 1 ($0.125)" in done.out
    assert "not known" in done.out
    assert "\x1b[31m" not in done.out
    assert rows("ledger.jsonl") == [json.loads(line) for line in ledger.read_text().splitlines()]


def test_a_database_is_exported_in_the_files_format(workplace: Path) -> None:
    done = jevexp(
        "dataset=demo", "backend=fake", "tracking=none", "caps=smoke", f"caps.ledger_url={URL}",
        cwd=workplace,
    )  # fmt: skip
    assert done.status == 0, done.err
    (own,) = workplace.glob("outputs/*/*/ledger.jsonl")
    kept = [json.loads(line) for line in own.read_text().splitlines()]
    assert rows(URL) == kept
    shown_run = verb("show", str(own.parent))
    assert "charged $0.06" in shown_run.out
    assert f"this is the run's part of sqlite:///{workplace.resolve()}/budget.db" in shown_run.out
    refused = verb("release", str(own), "0" * 8, "--yes")
    assert refused.status == 2
    assert "is a run's evidence" in refused.err


def test_rows_and_sessions_of_a_stranger_are_shown_as_they_are(workplace: Path) -> None:
    odd: list[dict[str, Any]] = [
        {"event": "cap", "cap_usd": 1},
        {"event": "reserve", "reservation_id": "y", "reserved_usd": 0.25},
        {"event": "reserve", "reservation_id": "x", "reserved_usd": 0, "ts": "now", "meta": [1]},
        {"event": "reserve", "reservation_id": "\x9b2J", "reserved_usd": 0, "ts": 1e300,
         "meta": {"task_id": {"a": 1}, "adapter": "\x1b[2J"}},
        {"event": "note", "text": "\x9b2J"},
    ]  # fmt: skip
    path = workplace / "odd.jsonl"
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in odd))
    sessions = [5, {"id": "x", "pid": "../.."}, {"id": "x", "host": [], "pid": 1}]
    (workplace / "odd.jsonl.sessions").write_text("\n".join(map(json.dumps, sessions)))
    done = verb("show", "odd.jsonl", "--open")
    assert done.status == 0, done.err
    assert "reservations: 3, open: 3 ($0.25)" in done.out
    assert [one["alive"] for one in shown("odd.jsonl")["open"]] == [None] * 3
    assert rows("odd.jsonl") == odd
    exported = verb("export", "odd.jsonl")
    assert not {"\x1b", "\x9b"} & set(done.out + exported.out)


@pytest.mark.parametrize("answer", ["y", "n", "\x04"])
def test_a_person_is_asked(ledger: Path, workplace: Path, answer: str) -> None:
    before = ledger.read_bytes()
    name = json.loads(ledger.read_text().splitlines()[-1])["reservation_id"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "jevexp", "ledger", "release", "ledger.jsonl", name],
        cwd=workplace, stdin=theirs, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        os.write(ours, answer.encode() + (b"\n" if answer.isalpha() else b""))
        out, _ = process.communicate(timeout=60)
        os.close(ours)
    assert "Charge $0 for each and give $0.125 back to " in out
    assert process.returncode == (0 if answer == "y" else 1)
    assert (ledger.read_bytes() == before) is (answer != "y")


def test_what_was_billed_after_all_is_charged(ledger: Path, workplace: Path) -> None:
    name = json.loads(ledger.read_text().splitlines()[-1])["reservation_id"]
    release = ("release", "ledger.jsonl", name, "--yes", "--charged")
    for wrong in ("0.126", "-0.1", "nan"):
        refused = verb(*release, wrong)
        assert refused.status == 2
        assert "--charged: expected 0 to the 0.125 US dollars" in refused.err
    done = verb(*release, "0.025")
    assert "released: 1, $0.1 given back" in done.out
    with FileLedger(ledger, 1.0) as after:
        assert after.charged_usd == 0.275


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("show", "nowhere.jsonl"), "nowhere.jsonl: no such ledger"),
        (("show", "postgresql://me:hunter2@h/d"), "ledger_url: holds a password"),
        (("show", "mysql://h/d"), "ledger_url: expected sqlite:///FILE or"),
        (("show", "sqlite:///nowhere.db"), "nowhere.db: no such ledger"),
        (("show", "noledger.txt"), "noledger.txt:1: not a ledger row"),
        (("show", "/dev/zero"), "/dev/zero: expected a file, found a device"),
        (("show", "pipe", "--open"), "pipe: expected a file, found a pipe"),
        (("show", "postgresql://h/d", "--password-env", "a b"), "password_env: string should"),
        (("release", "ledger.jsonl", "abc"), "abc: give at least 6 characters"),
        (("release", "ledger.jsonl", "nobody-at-all"), "nobody-at-all: no open reservation"),
    ],
)
def test_what_cannot_be_used_is_named_on_one_line(
    ledger: Path, workplace: Path, arguments: tuple[str, ...], line: str
) -> None:
    (workplace / "noledger.txt").write_text("hello\n")
    os.mkfifo(workplace / "pipe")
    before = ledger.read_bytes()
    done = verb(*arguments)
    assert done.status == 2
    assert line in done.err
    assert len(done.err.splitlines()) == 1
    assert "hunter2" not in done.err
    assert ledger.read_bytes() == before
    assert not (workplace / "nowhere.db").exists()
