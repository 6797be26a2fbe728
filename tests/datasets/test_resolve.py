"""From settings to tasks: pinned files, copies of them, shipped ones and local ones."""

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jevexp.datasets import LoadedFile, dataset_hash, load_dataset, load_tasks, pull, resolve
from jevexp.datasets.tasks import TaskFile, read_file
from jevexp.errors import InputError
from jevexp.settings import Dataset, PinnedFile
from tests.datasets.file_server import FileServer, pin_of, pinned, serving, task_lines

BODY = task_lines()
PIN = pin_of(BODY)
OTHER = task_lines(2, prefix="u")
OTHER_PIN = pin_of(OTHER, "data/other.jsonl")


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(BODY) as running:
        yield running


def local(path: Path, sha256: str | None = None) -> Dataset:
    return Dataset(name="local", source="local", path=str(path), sha256=sha256)


def shipped(pin: PinnedFile, path: str | None = None) -> Dataset:
    return Dataset(name="demo", source="shipped", files=(pin,), path=path)


def refusal(dataset: Dataset) -> str:
    with pytest.raises(InputError) as caught:
        load_dataset(dataset)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_pinned_dataset_is_downloaded_and_described(server: FileServer) -> None:
    dataset = pinned(server.url, PIN, title="Mini", licence="MIT")
    loaded = load_dataset(dataset)
    assert server.requests == ["/someone/benchmark/c0ffee/data/tasks.jsonl"]
    assert [task.id for task in loaded.tasks] == ["t0", "t1", "t2"]
    assert loaded.name == "mini"
    assert loaded.dataset_hash == dataset_hash(loaded.tasks)
    assert loaded.files == (
        LoadedFile(
            name="data/tasks.jsonl",
            url=f"{server.url}/someone/benchmark/c0ffee/data/tasks.jsonl",
            sha256=PIN.sha256,
            bytes=len(BODY),
            tasks=3,
        ),
    )
    assert loaded.pin == {
        "source": "pinned",
        "title": "Mini",
        "licence": "MIT",
        "repository": "someone/benchmark",
        "commit": "c0ffee",
        "base_url": server.url,
    }
    assert json.dumps([loaded.pin, *map(dataclasses.asdict, loaded.files)])


def test_several_files_are_one_dataset_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_bytes(BODY)
    (tmp_path / "other.jsonl").write_bytes(OTHER)
    loaded = load_dataset(pinned(None, OTHER_PIN, PIN, path=str(tmp_path)))
    assert [task.id for task in loaded.tasks] == ["u0", "u1", "t0", "t1", "t2"]
    assert [file.tasks for file in loaded.files] == [2, 3]


def test_pull_fills_the_cache_and_no_more(server: FileServer) -> None:
    server.body = b"no tasks at all\n"
    pin = pin_of(server.body)
    (path,) = pull(pinned(server.url, pin))
    assert path.read_bytes() == server.body


def test_what_is_not_to_be_had_has_three_ways_out() -> None:
    assert refusal(pinned("http://127.0.0.1:1", PIN)).endswith(
        "; run `jevexp data pull` later, point dataset.path at a copy, or use dataset=demo"
    )


@pytest.mark.parametrize("base_url", [None, "http://127.0.0.1:1"])
def test_a_copy_needs_no_network(tmp_path: Path, base_url: str | None) -> None:
    copy = tmp_path / "my copy.jsonl"
    copy.write_bytes(BODY)
    loaded = load_dataset(pinned(base_url, PIN, path=str(copy)))
    url = base_url and f"{base_url}/someone/benchmark/c0ffee/data/tasks.jsonl"
    assert [(file.name, file.url) for file in loaded.files] == [("data/tasks.jsonl", url)]
    assert not (tmp_path / "cache").exists()


def test_a_copy_may_be_in_a_folder_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_bytes(BODY)
    assert len(load_dataset(pinned(None, PIN, path=str(tmp_path))).tasks) == 3


def test_a_path_may_begin_with_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "tasks.jsonl").write_bytes(BODY)
    for dataset in (pinned(None, PIN, path="~/tasks.jsonl"), local(Path("~/tasks.jsonl"))):
        assert len(load_dataset(dataset).tasks) == 3


@pytest.mark.parametrize("size", ["shorter", "the same"])
def test_a_copy_with_other_bytes_is_refused(tmp_path: Path, size: str) -> None:
    other = BODY[:-1] if size == "shorter" else BODY.replace(b"12", b"13")
    copy = tmp_path / "tasks.jsonl"
    copy.write_bytes(other)
    difference = (
        f"expected {len(BODY)} bytes, found {len(other)}"
        if size == "shorter"
        else f"expected sha256 {PIN.sha256}, found {hashlib.sha256(other).hexdigest()}"
    )
    assert refusal(pinned(None, PIN, path=str(copy))) == (
        f"{copy}: not the pinned file: {difference}; "
        "leave dataset.path out to download it, or use dataset=local"
    )
    assert copy.read_bytes() == other


def test_a_copy_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_bytes(BODY)
    missing = tmp_path / "other.jsonl"
    expected = f"dataset.path: cannot read {missing}: No such file or directory"
    assert refusal(pinned(None, PIN, OTHER_PIN, path=str(tmp_path))) == expected
    assert refusal(pinned(None, PIN, path=str(missing))) == expected


def test_copies_of_several_files_are_in_a_folder(tmp_path: Path) -> None:
    copy = tmp_path / "tasks.jsonl"
    copy.write_bytes(BODY)
    assert refusal(pinned(None, PIN, OTHER_PIN, path=str(copy))) == (
        f"dataset.path: expected a folder with the 2 files of mini, found {str(copy)!r}"
    )


def test_an_id_occurs_once_in_all_files(tmp_path: Path) -> None:
    again = BODY + b"\n"
    (tmp_path / "tasks.jsonl").write_bytes(BODY)
    (tmp_path / "again.jsonl").write_bytes(again)
    dataset = pinned(None, PIN, pin_of(again, "again.jsonl"), path=str(tmp_path))
    assert refusal(dataset) == (
        f"{tmp_path}/again.jsonl:1: task 't0': id: also at {tmp_path}/tasks.jsonl:1"
    )


def test_the_number_of_tasks_is_part_of_the_pin(tmp_path: Path) -> None:
    copy = tmp_path / "tasks.jsonl"
    copy.write_bytes(BODY)
    pin = PIN.model_copy(update={"tasks": 4})
    assert refusal(pinned(None, pin, path=str(copy))) == f"{copy}: expected 4 tasks, found 3"


def test_a_pinned_dataset_hash_is_checked(tmp_path: Path) -> None:
    copy = tmp_path / "tasks.jsonl"
    copy.write_bytes(BODY)
    found = dataset_hash(load_tasks(copy))
    assert load_dataset(pinned(None, PIN, path=str(copy), dataset_hash=found)).dataset_hash == found
    assert refusal(pinned(None, PIN, path=str(copy), dataset_hash="0" * 64)) == (
        f"dataset.dataset_hash: expected {'0' * 64}, found {found}"
    )


def test_fields_that_no_task_has_are_ignored_only_in_pinned_files(tmp_path: Path) -> None:
    body = BODY.replace(b'"split"', b'"extra": 1, "split"')
    copy = tmp_path / "tasks.jsonl"
    copy.write_bytes(body)
    assert len(load_dataset(pinned(None, pin_of(body), path=str(copy))).tasks) == 3
    assert "extra: no such field" in refusal(local(copy))


def test_a_dataset_without_files_is_refused() -> None:
    assert refusal(pinned("https://example.org")) == "dataset.files: mini names no file"


def test_a_local_file_is_described(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(BODY)
    loaded = load_dataset(local(path, PIN.sha256))
    assert loaded.files == (
        LoadedFile(name=str(path), url=None, sha256=PIN.sha256, bytes=len(BODY), tasks=3),
    )
    assert loaded.pin["source"] == "local"
    assert loaded.pin["commit"] is None


def test_a_local_file_with_another_hash_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b"not even JSON")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    expected = f"dataset.sha256: expected {PIN.sha256}, found {found} in {path}"
    assert refusal(local(path, PIN.sha256)) == expected


@pytest.mark.parametrize("source", ["local", "pinned"])
def test_what_is_read_is_what_was_proven(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(BODY)
    changed = task_lines(3, prefix="v")

    def swap(*arguments: Any, **named: Any) -> TaskFile:
        # Somebody writes between the proof and the reading.
        path.write_bytes(changed)
        return read_file(*arguments, **named)

    monkeypatch.setattr(resolve, "read_file", swap)
    dataset = (
        local(path, PIN.sha256)
        if source == "local"
        else pinned("https://example.org", PIN).model_copy(update={"path": str(path)})
    )
    assert refusal(dataset) == f"{path}: changed while it was read; start again"


def test_a_local_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    reason = "No such file or directory"
    assert refusal(local(path)) == f"{path}: cannot read the task file: {reason}"
    assert refusal(local(path, PIN.sha256)) == f"dataset.path: cannot read {path}: {reason}"


def test_a_damaged_shipped_file_is_refused() -> None:
    message = refusal(shipped(PIN.model_copy(update={"path": "demo.jsonl"})))
    assert "demo.jsonl: not the pinned file: expected " in message
    assert message.endswith("; install jevexp again")


def test_a_shipped_dataset_takes_no_path() -> None:
    assert refusal(shipped(PIN, path="x.jsonl")) == (
        "dataset.path: demo ships with jevexp; use dataset=local for your own file"
    )


# What was loaded last


def test_a_file_is_read_once_until_somebody_touches_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(BODY)
    first = load_dataset(local(path))
    assert load_dataset(local(path)) is first
    changed = BODY.replace(b'"t0"', b'"x0"')
    assert len(changed) == len(BODY)
    path.write_bytes(changed)
    assert [task.id for task in load_dataset(local(path)).tasks] == ["x0", "t1", "t2"]
    path.unlink()
    with pytest.raises(InputError, match="cannot read the task file"):
        load_dataset(local(path))
