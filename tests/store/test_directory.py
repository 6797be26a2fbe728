"""The run directory: fresh, one run's alone, and readable after whatever happened to it."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.json import dumps
from jevexp.core.record import Record, Summary
from jevexp.errors import InputError
from jevexp.harness.summary import summarize
from jevexp.store import RunDirectory
from jevexp.store.records import Held
from tests.support.runs import manifest
from tests.support.tasks import record, task

RECORDS = [record(task("noul", id=f"t{number}")) for number in range(3)]
IDS = [
    "plain",
    "../../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a/b\\c",
    "nul\x00byte",
    "line\nbreak",
    "x" * 10_000,
    "größe ☃ 任務 мера",
    "e\u0301",
    "\u00e9",
    "CON",
    "Case",
    "case",
    "CASE",
    " case",
    "case.",
]


@pytest.fixture
def run(tmp_path: Path) -> Any:
    directory = RunDirectory.create(tmp_path / "run")
    yield directory
    directory.close()


def write_results(directory: RunDirectory, *records: Record) -> Path:
    for one in records:
        directory.append(one)
    directory.close()
    return directory.path / "results.jsonl"


# Fresh


def test_a_new_directory_has_results_and_a_place_for_raw_evidence(run: RunDirectory) -> None:
    assert sorted(path.name for path in run.path.iterdir()) == ["pending", "raw", "results.jsonl"]
    assert list(run.records()) == []


def test_its_parents_are_made(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path / "a" / "b" / "run").close()


def test_what_the_launcher_leaves_does_not_count(tmp_path: Path) -> None:
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra" / "config.yaml").write_text("x: 1")
    RunDirectory.create(tmp_path).close()


@pytest.mark.parametrize("name", ["results.jsonl", "manifest.json", "raw", "notes.txt", ".hidden"])
def test_a_directory_that_holds_anything_is_refused_and_left_alone(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"holds '{name}' already; every run needs a fresh"):
        RunDirectory.create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_second_run_in_the_same_directory_is_refused(run: RunDirectory) -> None:
    with pytest.raises(InputError, match="every run needs a fresh directory"):
        RunDirectory.create(run.path)


def test_a_file_in_the_directorys_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(InputError, match="is a file; every run needs a fresh directory"):
        RunDirectory.create(tmp_path / "run")
    assert (tmp_path / "run").read_text() == "mine"


def test_of_runs_that_look_at_the_same_moment_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The other one has looked as well, and found the directory empty.
    winner = RunDirectory.create(tmp_path)
    monkeypatch.setattr(Path, "iterdir", lambda path: iter(()))
    with pytest.raises(InputError, match="another run has just taken it"):
        RunDirectory.create(tmp_path)
    winner.append(RECORDS[0])
    winner.close()
    assert list(winner.records()) == RECORDS[:1]


def test_of_processes_that_start_at_once_exactly_one_gets_the_directory(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from jevexp.errors import InputError\n"
        "from jevexp.store import RunDirectory\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "try:\n"
        "    RunDirectory.create(Path(sys.argv[1])).close()\n"
        "except InputError:\n"
        "    sys.exit(2)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "run")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=30)
    assert sorted(process.returncode for process in processes) == [0, 2, 2]


# Raw evidence


@pytest.mark.parametrize("task_id", IDS)
def test_no_id_leads_out_of_the_folder_of_raw_evidence(run: RunDirectory, task_id: str) -> None:
    digest = run.write_raw(task_id, '{"größe": 1}')
    (path,) = [path for path in run.path.parent.rglob("*.json") if path.is_file()]
    assert path.parent == run.raw
    assert path.name == hashlib.sha256(task_id.encode()).hexdigest() + ".json"
    assert path.read_bytes() == '{"größe": 1}'.encode()
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_ids_that_look_alike_have_files_of_their_own(run: RunDirectory) -> None:
    for task_id in IDS:
        run.write_raw(task_id, dumps(task_id))
    names = {path.name for path in run.raw.iterdir()}
    # Also where the file system does not tell large from small letters.
    assert len({name.lower() for name in names}) == len(IDS)


def test_raw_evidence_is_never_replaced(run: RunDirectory) -> None:
    run.write_raw("t", "first")
    with pytest.raises(FileExistsError):
        run.write_raw("t", "second")
    assert [path.read_text() for path in run.raw.iterdir()] == ["first"]


# Results


def test_records_come_back_in_the_order_they_were_made(run: RunDirectory) -> None:
    path = write_results(run, *RECORDS)
    assert list(run.records()) == RECORDS
    assert list(RunDirectory(run.path).records()) == RECORDS
    assert path.read_bytes().count(b"\n") == 3


def test_every_record_is_forced_to_disk_before_append_returns(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_size))
    run.append(RECORDS[0])
    assert synced == [(run.path / "results.jsonl").stat().st_size]
    assert synced[0] > 0


def test_closed_results_take_no_more(run: RunDirectory) -> None:
    run.close()
    run.close()
    with pytest.raises(ValueError, match="the results are closed"):
        run.append(RECORDS[0])


def test_a_torn_last_line_is_no_record_wherever_it_is_torn(run: RunDirectory) -> None:
    path = write_results(run, *RECORDS)
    whole = path.read_bytes()
    second = len(b"".join(whole.splitlines(keepends=True)[:2]))
    for end in (*range(second, len(whole), 7), len(whole) - 1):
        path.write_bytes(whole[:end])
        assert list(run.records()) == RECORDS[:2]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"hello", "Expecting value"),
        (b"", "Expecting value"),
        (b"5", "Input should be a valid dictionary"),
        (b'{"task_id": NaN}', "NaN is not a JSON number"),
        (b"\xff", "utf-8"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"task_id": "x"}', "family: Field required"),
    ],
)
def test_a_line_that_is_no_record_is_named_in_one_line(
    run: RunDirectory, line: bytes, reason: str
) -> None:
    path = write_results(run, *RECORDS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + line + b"\n" + lines[2])
    with pytest.raises(ValueError, match=reason) as raised:
        list(run.records())
    assert str(raised.value).startswith(f"{path}:2: not a record: ")
    assert "\n" not in str(raised.value)


def test_results_behind_a_link_are_not_read(run: RunDirectory, tmp_path: Path) -> None:
    path = write_results(run, *RECORDS)
    path.symlink_to(path.rename(tmp_path / "elsewhere.jsonl"))
    with pytest.raises(OSError, match=r"results\.jsonl"):
        list(run.records())


def test_a_full_disk_leaves_the_records_before_it_and_can_be_closed(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.append(RECORDS[0])

    class Full:
        """Takes ten bytes, and then nothing."""

        def __init__(self, file: Any) -> None:
            self._file = file
            self._room = 10

        def write(self, data: memoryview) -> int:
            if not self._room:
                raise OSError(28, "No space left on device")
            taken: int = self._file.write(data[: self._room])
            self._room = 0
            return taken

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    monkeypatch.setattr(run, "_results", Full(run._results))
    with pytest.raises(OSError, match="No space left"):
        run.append(RECORDS[1])
    run.close()
    assert list(run.records()) == RECORDS[:1]


# Answers without a record


def test_an_answer_is_held_until_its_record_is_there(run: RunDirectory) -> None:
    held = record(task("noul", id="t/0"), raw_sha256=hashlib.sha256(b"{}").hexdigest())
    run.hold(held, "{}")
    assert list(run.held()) == [Held(held, "{}")]
    run.append(held)
    assert list(run.held()) == []
    run.close()
    assert not (run.path / "pending").exists()


def test_what_is_still_held_at_the_end_stays(run: RunDirectory) -> None:
    held = record(task("noul"), raw_sha256=hashlib.sha256(b"{}").hexdigest())
    run.hold(held, "{}")
    run.close()
    assert list(RunDirectory(run.path).held()) == [Held(held, "{}")]


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_an_answer_that_was_cut_off_while_it_was_held_is_none(run: RunDirectory, cut: int) -> None:
    run.hold(record(task("noul"), raw_sha256=hashlib.sha256(b"{}").hexdigest()), "{}")
    (path,) = (run.path / "pending").iterdir()
    path.write_bytes(path.read_bytes()[:cut])
    assert list(run.held()) == []


def test_a_held_record_of_other_evidence_is_none(run: RunDirectory) -> None:
    run.hold(record(task("noul")), "{}")
    assert list(run.held()) == []


# In use


def test_a_directory_is_in_use_until_it_is_released(run: RunDirectory) -> None:
    other = RunDirectory(run.path)
    assert other.in_use
    run.close()
    assert other.in_use
    run.release()
    assert not other.in_use


def test_a_killed_process_uses_nothing(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from jevexp.store import RunDirectory\n"
        "run = RunDirectory.create(Path(sys.argv[1])); assert RunDirectory(run.path).in_use;"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    path = tmp_path / "run"
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -9
    assert not RunDirectory(path).in_use


# Seal


def test_the_seal_covers_every_file_and_sha256sum_agrees(run: RunDirectory) -> None:
    (run.path / ".hydra").mkdir()
    (run.path / ".hydra" / "config.yaml").write_text("größe: 1")
    run.write_raw("t0", "{}")
    (run.raw / "checksums.sha256").write_text("not the seal")
    write_results(run, *RECORDS)
    run.write_summary(summarize([], []))
    run.seal()
    sealed = (run.path / "checksums.sha256").read_text().splitlines()
    files = {
        path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()
    }
    assert {line.split("  ", 1)[1] for line in sealed} == files - {"checksums.sha256"}
    assert sealed == sorted(sealed, key=lambda line: Path(line.split("  ", 1)[1]))

    if shutil.which("sha256sum") is None:
        pytest.skip("no sha256sum here")
    check = ["sha256sum", "--check", "--strict", "--quiet", "checksums.sha256"]
    assert subprocess.run(check, cwd=run.path, check=False).returncode == 0
    (run.path / "summary.json").write_text("{}")
    changed = subprocess.run(check, cwd=run.path, check=False, capture_output=True, text=True)
    assert changed.returncode == 1
    assert changed.stdout == "summary.json: FAILED\n"


def test_a_sealed_run_is_not_sealed_again(run: RunDirectory) -> None:
    run.close()
    run.seal()
    with pytest.raises(FileExistsError):
        run.seal()


# Summary and manifest


def test_a_summary_is_read_as_it_was_written(run: RunDirectory) -> None:
    assert run.read_summary() is None
    fields = summarize([], []).plain() | {"größe": [1.5, None]}
    summary = Summary.model_validate(fields)
    run.write_summary(summary)
    assert run.read_summary() == summary
    assert json.loads((run.path / "summary.json").read_text()) == fields


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"accuracy": "high"}, "accuracy: Input should be a valid number"),
        ({"latency": {"n": 1, "p50_s": 1.0}}, "latency.p95_s: Field required"),
        ({"per_family": {"f": {}}}, "per_family.f.n_planned: Field required"),
        (
            {"paraphrase_consistency": {"pairs": 1}},
            "paraphrase_consistency.both_valid: Field required",
        ),
        (
            {
                "paraphrase_consistency": {
                    "pairs": 1,
                    "both_valid": 1,
                    "agree": 2,
                    "agreement": 2.0,
                    "both_correct_rate_all_pairs": None,
                }
            },
            "paraphrase_consistency: Value error, more pairs agree than there are",
        ),
    ],
)
def test_a_summary_has_what_everybody_reads(
    run: RunDirectory, changed: dict[str, Any], reason: str
) -> None:
    fields = summarize([], []).plain() | changed
    (run.path / "summary.json").write_text(json.dumps(fields))
    with pytest.raises(InputError) as raised:
        run.read_summary()
    assert str(raised.value) == f"{run.path}/summary.json: not a summary: {reason}"


@pytest.mark.parametrize(
    ("section", "changed", "reason"),
    [
        ("harness", {}, "harness.name: Field required"),
        ("backend", {"name": 1}, "backend.name: Input should be a valid string"),
        ("identity", {"verdict": "confirmed"}, "identity.fields: Field required"),
        ("started", "0001-01-01T00:00:00Z", "started: String should match pattern"),
        ("started", "yesterday", "started: String should match pattern"),
    ],
)
def test_a_manifest_has_what_everybody_reads(
    run: RunDirectory, section: str, changed: Any, reason: str
) -> None:
    fields = manifest(run.path).model_dump(mode="json") | {section: changed}
    (run.path / "manifest.json").write_text(json.dumps(fields))
    with pytest.raises(InputError) as raised:
        run.read_manifest()
    assert str(raised.value).startswith(f"{run.path}/manifest.json: not a manifest: {reason}")


@pytest.mark.parametrize("content", [b"", b"hello", b"[]", b'{"status": 5}', b"\xff", b"[" * 10**5])
def test_what_is_no_manifest_is_named_in_one_line(run: RunDirectory, content: bytes) -> None:
    (run.path / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=r"manifest\.json: not a manifest: ") as raised:
        run.read_manifest()
    assert "\n" not in str(raised.value)


def test_a_directory_without_manifest_is_probably_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"manifest\.json: No such file .*; is this a run dir"):
        RunDirectory(tmp_path).read_manifest()


@pytest.mark.parametrize("content", [b"", b"hello", b"[]", b"\xff"])
def test_what_is_no_summary_is_named_in_one_line(run: RunDirectory, content: bytes) -> None:
    (run.path / "summary.json").write_bytes(content)
    with pytest.raises(InputError, match=r"summary\.json: not a summary: "):
        run.read_summary()
