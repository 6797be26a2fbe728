"""Databases, experiments and servers of strangers: nothing is sent where they say."""

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from jevexp.cli.verbs.export import main as export
from jevexp.cli.verbs.ui import main as ui
from jevexp.errors import InputError
from jevexp.tracking import TrackingError
from jevexp.tracking.mlflow import MlflowTracker
from jevexp.tracking.mlflow.environment import environment_for, mlflow_environment
from jevexp.tracking.mlflow.location import StoreLocation, is_own, make_own
from tests.support.cli import jevexp
from tests.support.runs import make_run, noul_tasks, tracking

TASKS = noul_tasks(2)
SECRET = "hunter2-and-more"


class Trap(BaseHTTPRequestHandler):
    """Whatever comes here was sent to an address that no person named."""

    caught: list[str]

    def do_PUT(self) -> None:
        self.caught.append(f"{self.command} {self.path} {self.headers.get('Authorization')}")
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self.do_PUT()

    def do_POST(self) -> None:
        self.do_PUT()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def trap() -> Iterator[str]:
    Trap.caught = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Trap) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


StrangersDatabase = Callable[[Path, str], None]


@pytest.fixture(scope="module")
def strangers_database(tmp_path_factory: pytest.TempPathFactory) -> StrangersDatabase:
    """Makes a database whose experiment keeps its files elsewhere; nobody remembers making it."""
    template = tmp_path_factory.mktemp("strangers") / "mlflow.db"
    with mlflow_environment(10):
        from mlflow import MlflowClient

        client = MlflowClient(tracking_uri=f"sqlite:///{template}")
        client.create_experiment("jevexp", artifact_location="file:///elsewhere")

    def make(path: Path, location: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(template, path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE experiments SET artifact_location = ?", (location,))
            connection.commit()

    return make


@pytest.fixture
def stranger(
    tmp_path: Path,
    trap: str,
    monkeypatch: pytest.MonkeyPatch,
    strangers_database: StrangersDatabase,
) -> Path:
    """A run that came with a database, which names the trap."""
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", SECRET)
    outputs = tmp_path / "theirs" / "outputs"
    strangers_database(outputs / "mlflow.db", f"{trap}/api/2.0/mlflow-artifacts/artifacts/1")
    return make_run(outputs / "run", TASKS).path


def test_a_database_that_came_with_a_run_is_not_used(stranger: Path) -> None:
    database = stranger.parent / "mlflow.db"
    before = database.read_bytes()

    with pytest.raises(InputError, match="nothing says that this database is yours") as refused:
        export([str(stranger)])

    assert f"--uri sqlite:///{database}" in str(refused.value)
    assert database.read_bytes() == before
    assert Trap.caught == []


def test_one_that_was_named_still_sends_nothing_elsewhere(
    stranger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = f"sqlite:///{stranger.parent}/mlflow.db"

    assert export([str(stranger), "--uri", uri]) == 1

    assert "experiment 'jevexp' keeps its files at http://127.0.0.1:" in capsys.readouterr().out
    assert Trap.caught == []
    assert export([str(stranger), "--uri", uri, "--experiment", "another"]) == 0
    assert list((stranger.parent / "mlartifacts").rglob("manifest.json"))
    assert Trap.caught == []


def test_a_run_that_the_database_prepared_does_not_choose_either(
    stranger: Path, trap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    database = stranger.parent / "mlflow.db"
    uri = f"sqlite:///{database}"
    assert export([str(stranger), "--uri", uri, "--experiment", "another"]) == 0
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE runs SET artifact_uri = ?", (f"{trap}/x",))
        connection.execute("DELETE FROM tags WHERE key = 'jev.evidence_sha256'")
        connection.commit()

    assert export([str(stranger), "--uri", uri, "--experiment", "another"]) == 1

    assert f"keeps its files at {trap}/x" in capsys.readouterr().out
    assert Trap.caught == []


def test_files_are_not_written_through_links_beside_a_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    outputs = tmp_path / "outputs"
    run = make_run(outputs / "run", TASKS).path
    (outputs / "mlartifacts").symlink_to(mine)

    assert export([str(run)]) == 1

    assert "mlartifacts: is a link" in capsys.readouterr().out
    assert list(mine.iterdir()) == []


def test_what_a_run_says_about_its_folder_of_runs_is_no_reason(
    workplace: Path, strangers_database: StrangersDatabase
) -> None:
    strangers_database(workplace / "victim" / "mlflow.db", "file:///elsewhere")
    before = (workplace / "victim" / "mlflow.db").read_bytes()
    run = make_run(workplace / "victim" / "a" / "run", TASKS).path
    (workplace / "victim" / "a" / "mlflow.db").symlink_to(workplace / "victim" / "mlflow.db")

    with pytest.raises(InputError, match=r"victim/a/mlflow\.db: nothing says that"):
        export([str(run)])

    assert (workplace / "victim" / "mlflow.db").read_bytes() == before


def test_a_run_does_not_start_beside_a_strangers_database(
    workplace: Path, strangers_database: StrangersDatabase
) -> None:
    strangers_database(workplace / "outputs" / "mlflow.db", "file:///elsewhere")

    done = jevexp("dataset=demo", cwd=workplace)

    assert done.status == 2
    assert "nothing says that this database is yours" in done.err
    assert [path.name for path in (workplace / "outputs").iterdir()] == ["mlflow.db"]


def test_the_user_interface_is_not_opened_on_a_strangers_database(stranger: Path) -> None:
    with pytest.raises(InputError, match="nothing says that this database is yours"):
        ui(["--outputs", str(stranger.parent)])


def test_a_database_that_was_named_once_to_log_to_is_known_from_then_on(
    tmp_path: Path, strangers_database: StrangersDatabase
) -> None:
    outputs = tmp_path / "outputs"
    database = outputs / "mlflow.db"
    strangers_database(database, (outputs / "mlartifacts").as_uri())
    run = make_run(outputs / "run", TASKS).path
    assert not is_own(database)

    assert export([str(run), "--uri", f"sqlite:///{database}"]) == 0

    assert is_own(database)
    assert export([str(run)]) == 0


def test_looking_at_a_database_does_not_make_it_ones_own(
    tmp_path: Path, strangers_database: StrangersDatabase
) -> None:
    database = tmp_path / "mlflow.db"
    strangers_database(database, (tmp_path / "mlartifacts").as_uri())

    MlflowTracker(tracking(uri=f"sqlite:///{database}"), tmp_path).runs()

    assert not is_own(database)


def test_a_database_is_ones_own_only_as_and_where_it_was_made(tmp_path: Path) -> None:
    database = tmp_path / "mlflow.db"
    make_own(database)
    assert is_own(database)

    shutil.copy(database, tmp_path / "copy.db")
    assert not is_own(tmp_path / "copy.db")
    database.rename(tmp_path / "moved.db")
    assert not is_own(tmp_path / "moved.db")
    (tmp_path / "mlflow.db").symlink_to(tmp_path / "moved.db")
    assert not is_own(database)
    database.unlink()
    (tmp_path / "moved.db").rename(database)
    assert is_own(database)
    # Another content in the same file, as an unpacked archive may leave it.
    with database.open("r+b") as file:
        file.seek(68)
        file.write(b"\0\0\0\0")
    assert not is_own(database)


@pytest.mark.parametrize(
    ("uri", "location", "held"),
    [
        (None, "file:///o/mlartifacts", True),
        (None, "file:///o/mlartifacts/1/artifacts", True),
        (None, "file:///o/mlartifacts/../secret", False),
        (None, "file:///o/mlartifacts%2F..%2F..%2Fetc", False),
        (None, "file:///o/mlartifacts2", False),
        (None, "file://host/o/mlartifacts", False),
        (None, "/o/mlartifacts", False),
        (None, "mlflow-artifacts:/1", False),
        (None, "s3://bucket/1", False),
        ("https://h/base", "mlflow-artifacts:/1", True),
        ("https://h/base", "mlflow-artifacts://h/1", False),
        ("https://h/base", "mlflow-artifacts://evil/1", False),
        ("https://h/base", "mlflow-artifacts:\\\\evil\\1", False),
        ("https://h/base", "https://h/base/api/1", True),
        ("https://h/base", "https://h/based/api/1", False),
        ("https://h", "https://h.evil/1", False),
        ("https://h", "https://h@evil/1", False),
        ("https://h", "https://h/\n@evil", False),
        ("https://h", "http://h/1", False),
        ("https://h", "file:///home/me", False),
        ("https://h", "s3://bucket/1", False),
        ("https://h", "runs:/1/x", False),
        ("https://h", "", False),
        ("https://h", "https://[", False),
        ("postgresql://u@h/d", "file:///o/mlartifacts/1", True),
        ("postgresql://u@h/d", "file:///home/me", False),
        ("databricks", "dbfs:/databricks/1", True),
        ("databricks", "dbfs://profile@host/1", False),
        ("databricks", "s3://bucket/1", False),
    ],
)
def test_files_go_where_the_address_says_and_nowhere_else(
    uri: str | None, location: str, held: bool
) -> None:
    assert StoreLocation.of(uri, Path("/o")).holds(location) is held


SECRETS = {
    "MLFLOW_TRACKING_TOKEN": SECRET,
    "DATABRICKS_TOKEN": SECRET,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AZURE_STORAGE_ACCESS_KEY": SECRET,
    "OPENAI_API_KEY": SECRET,
    "PGPASSWORD": SECRET,
    "MLFLOW_TRACKING_INSECURE_TLS": "true",
}


@pytest.mark.parametrize(
    ("uri", "kept"),
    [
        (None, set()),
        ("https://h", set()),
        ("postgresql://u@h/d", {"PGPASSWORD"}),
        ("databricks", {"DATABRICKS_TOKEN"}),
        ("mysql://u@h/d", set()),
    ],
)
def test_mlflows_process_finds_no_login_but_that_of_the_named_address(
    uri: str | None, kept: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    found = environment_for(StoreLocation.of(uri, Path("/o")), {}, "/empty")
    assert SECRETS.keys() & found.keys() == kept
    needs_home = uri is not None and not uri.startswith("https")
    assert (found["HOME"] == "/empty") is not needs_home


def test_a_server_on_this_machine_is_reached_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    here = environment_for(StoreLocation.of("http://127.0.0.1:5000", Path("/o")), {}, "/empty")
    there = environment_for(StoreLocation.of("http://h:5000", Path("/o")), {}, "/empty")
    assert "HTTP_PROXY" not in here
    assert there["HTTP_PROXY"] == "http://proxy.test:3128"


@pytest.mark.parametrize("kind", ["pipe", "link", "second name"])
def test_a_run_with_something_else_than_files_is_not_logged(kind: str, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", TASKS)
    other = tmp_path / "private"
    other.write_text("secret")
    odd = run.raw / "odd"
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "link":
        odd.symlink_to(other)
    else:
        os.link(other, odd)

    with pytest.raises(TrackingError, match=r"raw/odd (is a|has a second name)"):
        MlflowTracker(tracking(raw_evidence=True), tmp_path).log(run)


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_a_change_that_somebody_left_is_not_put_into_a_new_database(
    suffix: str, tmp_path: Path
) -> None:
    left = tmp_path / f"mlflow.db{suffix}"
    left.write_bytes(b"anything")

    with pytest.raises(TrackingError, match=f"mlflow.db{suffix}: is left of another database"):
        MlflowTracker(tracking(), tmp_path).log(make_run(tmp_path / "run", TASKS))

    assert not (tmp_path / "mlflow.db").exists()


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", "..", ".", "", "a/b", "a\nb"])
def test_a_name_in_the_store_leads_to_no_other_folder(name: str, tmp_path: Path) -> None:
    tracker = MlflowTracker(tracking(), tmp_path / "outputs")
    directory = make_run(tmp_path / "run", TASKS)
    run_id = tracker.log(directory).run_id
    shutil.rmtree(directory.path)
    with closing(sqlite3.connect(tmp_path / "outputs" / "mlflow.db")) as connection:
        connection.execute("UPDATE tags SET value = ? WHERE key = 'jev.run'", (name,))
        connection.commit()

    found = MlflowTracker(tracking(), tmp_path / "outputs").store.fetch(run_id, tmp_path / "copies")

    assert found.path == tmp_path / "copies" / run_id / "run"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_lock_that_somebody_put_there_is_neither_followed_nor_waited_for(
    kind: str, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    lock = tmp_path / "outputs" / "mlflow.db.lock"
    lock.parent.mkdir()
    if kind == "link":
        lock.symlink_to(victim)
    else:
        os.mkfifo(lock)

    with pytest.raises(TrackingError, match=r"mlflow\.db\.lock: is a (link|pipe)"):
        MlflowTracker(tracking(), tmp_path / "outputs").log(make_run(tmp_path / "run", TASKS))

    assert victim.read_text() == "mine"
