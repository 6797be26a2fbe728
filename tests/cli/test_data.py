"""`jevexp data` against a small configuration tree and a real local server."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli import conf_dir
from jevexp.cli.verbs import data
from jevexp.errors import InputError

FILES = {"one.jsonl": b"the first file\n", "two.jsonl": b"the second file, which is longer\n"}
OPTIONS = {"one": ["one.jsonl"], "two": ["two.jsonl"], "both": ["one.jsonl", "two.jsonl"]}


def option(name: str, base_url: str, files: list[str]) -> str:
    lines = [f"name: {name}", "source: pinned", "repository: someone/benchmark", "commit: c0ffee"]
    lines += [f"base_url: {base_url}", "files:"]
    for file in files:
        body = FILES[file]
        lines += [f"  - path: data/{file}", f"    sha256: {hashlib.sha256(body).hexdigest()}"]
        lines += [f"    bytes: {len(body)}", "    tasks: 7"]
    return "\n".join(lines) + "\n"


@pytest.fixture
def requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Publish the files, point the verb at options for them, and list what is asked for."""
    published = tmp_path / "www" / "someone" / "benchmark" / "c0ffee" / "data"
    published.mkdir(parents=True)
    for name, body in FILES.items():
        (published / name).write_bytes(body)
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path / "www"))

        def log_message(self, format: str, *args: Any) -> None:
            asked.append(self.path.rsplit("/", 1)[-1])

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        options = tmp_path / "conf" / "dataset"
        options.mkdir(parents=True)
        base_url = f"http://127.0.0.1:{http.server_port}"
        for name, files in OPTIONS.items():
            (options / f"{name}.yaml").write_text(option(name, base_url, files))
        (options / "local.yaml").write_text("name: local\nsource: local\npath: null\n")
        monkeypatch.setattr(data, "conf_dir", lambda: tmp_path / "conf")
        monkeypatch.setenv("JEVEXP_CACHE", str(tmp_path / "cache"))
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield asked
        finally:
            http.shutdown()
            thread.join()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "datasets"


def cached(cache: Path, name: str) -> Path:
    return cache / hashlib.sha256(FILES[name]).hexdigest() / name


def test_pull_downloads_every_pinned_file_once(
    requests: list[str], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert data.main(["pull"]) == 0
    assert sorted(requests) == ["one.jsonl", "two.jsonl"]
    paths = [cached(cache, name) for name in FILES]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in paths]
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert data.main(["pull"]) == 0
    assert len(requests) == 2


def test_pull_downloads_what_is_named(requests: list[str], cache: Path) -> None:
    assert data.main(["pull", "two"]) == 0
    assert requests == ["two.jsonl"]


def test_verify_fails_until_every_file_is_cached(
    requests: list[str], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.main(["pull", "two"])
    capsys.readouterr()
    assert data.main(["verify", "two"]) == 0
    assert data.main(["verify", "both"]) == 1
    assert data.main(["verify"]) == 1
    one, two = (f"missing {cached(cache, 'one.jsonl')}", f"cached  {cached(cache, 'two.jsonl')}")
    assert capsys.readouterr().out.splitlines() == [two, one, two, one, two]
    data.main(["pull"])
    assert data.main(["verify"]) == 0


def test_verify_finds_a_damaged_file_and_pull_replaces_it(
    requests: list[str], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.main(["pull", "one"])
    path = cached(cache, "one.jsonl")
    path.write_bytes(b"the first life\n")
    capsys.readouterr()
    assert data.main(["verify", "one"]) == 1
    assert capsys.readouterr().out == f"damaged {path}\n"
    assert data.main(["pull", "one"]) == 0
    assert data.main(["verify", "one"]) == 0


def test_list_shows_sizes_hashes_and_what_is_cached(
    requests: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    data.main(["pull", "one"])
    capsys.readouterr()
    assert data.main(["list"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    short = {name: hashlib.sha256(body).hexdigest()[:12] for name, body in FILES.items()}
    assert rows[0] == ["dataset", "tasks", "bytes", "cache", "sha256"]
    assert rows[2:] == [
        ["both", "14", "48", "missing", "2", "files"],
        ["one", "7", "15", "cached", short["one.jsonl"]],
        ["two", "7", "33", "missing", short["two.jsonl"]],
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("bot", "did you mean both?"), ("local", "there are both, one, two")],
)
@pytest.mark.parametrize("verb", ["pull", "verify"])
def test_an_unknown_dataset_is_refused(
    requests: list[str], verb: str, name: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        data.main([verb, "one", name])
    assert str(caught.value) == f"{name}: no such pinned dataset; {hint}"
    assert requests == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source: pinned\nname: x\nfile: []\n", "dataset.file: no such field; "),
        ("source: pinned\nname: 3\n", "dataset.name: input should be a valid string, found 3"),
        ("source: pinned\nname: ${oops}\n", "Interpolation key 'oops' not found"),
        ("source: [pinned\n", "while parsing a flow sequence"),
    ],
)
def test_an_unusable_option_is_named(
    requests: list[str], tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "conf" / "dataset" / "bad.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        data.main(["list"])
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_a_verb_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        data.main([])
    assert caught.value.code == 2
    assert "usage: jevexp data" in capsys.readouterr().err


def test_the_projects_own_pins_are_the_benchmarks() -> None:
    datasets = data.pinned_datasets(conf_dir() / "dataset")
    assert {name: sum(pin.tasks for pin in one.files) for name, one in datasets.items()} == {
        "easy": 48,
        "hard": 111,
        "original": 72,
        "public": 231,
    }
    parts = [datasets[name].files[0] for name in ("original", "easy", "hard")]
    assert datasets["public"].files == tuple(parts)
    assert {one.commit for one in datasets.values()} == {"bb05a335bc809e61b20c0f745d25499a82b326fc"}
