"""Run directories from strangers: whatever they hold, a verdict comes soon and in little room."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jevexp.store.checksums import CHECKSUMS
from jevexp.store.directory import LEDGER, MANIFEST, RESULTS, SUMMARY
from jevexp.verification import State, verify_run
from tests.support.forgery import edit, lines, raw_file, reseal, write_lines
from tests.verification.test_run import complaints

JSON_FILES = (MANIFEST, SUMMARY, RESULTS, LEDGER)


def refused(run: Path) -> list[str]:
    """What is said about a directory that must not verify, within five seconds."""
    started = time.monotonic()
    report = verify_run(run)
    assert time.monotonic() - started < 5
    assert report.state is State.FAILED
    return complaints(report)


def replace_by_link(path: Path) -> None:
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    path.symlink_to(aside.name)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_socket(path: Path) -> None:
    path.unlink()
    here = Path.cwd()
    # The address of a socket has to be short.
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    finally:
        os.chdir(here)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_hard_link(path: Path) -> None:
    os.link(path, path.parents[1] / "outside")


@pytest.mark.parametrize("name", [*JSON_FILES, CHECKSUMS, "run.log"])
@pytest.mark.parametrize(
    "replace",
    [replace_by_link, replace_by_pipe, replace_by_socket, replace_by_folder, replace_by_hard_link],
)
def test_what_is_no_file_of_the_directory_alone(
    run: Path, name: str, replace: Callable[[Path], None]
) -> None:
    replace(run / name)

    if (name, replace) == (CHECKSUMS, replace_by_folder):
        # As if it had none.
        assert verify_run(run).state is State.INCOMPLETE
    else:
        assert refused(run)


def test_a_folder_that_is_a_link(run: Path) -> None:
    (run / "raw").rename(run.parent / "raw")
    (run / "raw").symlink_to(run.parent / "raw")

    assert "files: raw: is a link, where only files and folders may be" in refused(run)


def test_checksums_that_name_files_elsewhere(run: Path) -> None:
    for name in ("../secret", "/etc/passwd", "raw/../manifest.json", "./run.log", "a\0b", ""):
        with (run / CHECKSUMS).open("ab") as file:
            file.write(f"{'0' * 64}  {name}\n".encode())

    assert sum("not a checksum and a name" in line for line in refused(run)) >= 5


def test_a_file_with_a_hole_as_large_as_no_disk(run: Path) -> None:
    with (run / RESULTS).open("ab") as file:
        file.truncate(1 << 42)

    assert any("too much to be a run" in line for line in refused(run))


def test_folders_within_folders(run: Path) -> None:
    deep = run / Path(*["d"] * 40)
    deep.mkdir(parents=True)

    assert any("levels deep" in line for line in refused(run))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null\n",
        b"{}\n",
        b"\xff\xfe\n",
        b"\0" * 1000 + b"\n",
        b"[" * 100_000 + b"\n",
        b"9" * 100_000 + b"\n",
        b"1e999\n",
        b'{"task_id": {}}\n',
        b'{"task_id": "\\ud800"}\n',
    ],
    ids=range(10),
)
@pytest.mark.parametrize("name", [*JSON_FILES, "raw"])
def test_content_that_is_something_else(run: Path, name: str, content: bytes) -> None:
    path = raw_file(run, lines(run, RESULTS)[0]["task_id"]) if name == "raw" else run / name
    path.write_bytes(content)
    reseal(run)

    assert refused(run)


def test_ids_that_are_paths_stay_inside(run: Path) -> None:
    records = lines(run, RESULTS)
    for at, task_id in enumerate(["../../etc/passwd", "a\0b", "x" * 10_000, "\u202egnp.exe"]):
        records[at]["task_id"] = task_id
    write_lines(run, RESULTS, records)
    reseal(run)

    assert any("is not among the planned ones" in line for line in refused(run))


def test_a_dataset_path_of_a_stranger_is_not_read_out(run: Path) -> None:
    secret = run.parent / "secret"
    secret.write_text("PASSWORD=hunter2\n")

    def change(manifest: dict[str, dict[str, dict[str, dict[str, object]]]]) -> None:
        dataset = manifest["config"]["resolved"]["dataset"]
        dataset.update(source="local", path=str(secret), files=[], dataset_hash=None)

    edit(run, MANIFEST, change)
    reseal(run)

    report = verify_run(run)
    assert report.check("tasks").result == "not checked"
    assert "hunter2" not in json.dumps(report.as_dict())


@pytest.mark.parametrize("name", [MANIFEST, RESULTS, "raw"])
def test_a_line_without_end_takes_little_memory(run: Path, name: str) -> None:
    path = raw_file(run, lines(run, RESULTS)[0]["task_id"]) if name == "raw" else run / name
    with path.open("ab") as file:
        file.truncate(512 << 20)
    # Hashing takes no memory, and half a gigabyte some seconds.
    (run / CHECKSUMS).unlink()
    script = (
        "import resource, sys; from pathlib import Path;"
        "resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20));"
        "from jevexp.cli.main import main; sys.exit(main(['verify', sys.argv[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(run)], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip

    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_any_change_of_a_value_gets_a_verdict(
    noisy: Path, tmp_path_factory: pytest.TempPathFactory, draw: st.DataObject
) -> None:
    """Any value of any JSON file replaced by any other: a verdict, and no traceback."""
    run = Path(shutil.copytree(noisy, tmp_path_factory.mktemp("any") / "run"))
    name = draw.draw(st.sampled_from([*JSON_FILES, "raw"]))
    path = raw_file(run, lines(run, RESULTS)[0]["task_id"]) if name == "raw" else run / name
    values = lines(run, name) if name in (RESULTS, LEDGER) else [json.loads(path.read_bytes())]
    place = draw.draw(st.sampled_from(values))
    while True:
        key = draw.draw(st.sampled_from(list(place) if isinstance(place, dict) else
                                        range(len(place))))  # fmt: skip
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or draw.draw(st.booleans()):
            break
        place = inner
    json_values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=5,
    )  # fmt: skip
    place[key] = draw.draw(json_values)
    if name in (RESULTS, LEDGER):
        write_lines(run, name, values)
    else:
        path.write_text(json.dumps(values[0], ensure_ascii=False))
    reseal(run)

    assert verify_run(run).state in State
    shutil.rmtree(run)
