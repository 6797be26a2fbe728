"""A PostgreSQL of the test's own: Debian's programs, a fresh cluster, loopback only."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.ports import free_port

_PLACES = "/usr/lib/postgresql/*/bin/postgres"
_START_TIMEOUT_S = 60
# PostgreSQL refuses to run as root.
_USERS = ("postgres", "nobody")


class Postgres:
    """One server, and the database `postgres` in it; nobody is asked for a password."""

    def __init__(self, programs: Path, folder: Path, port: int, user: str | None) -> None:
        self._programs = programs
        self._folder = folder
        self._port = port
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The database's address for SQLAlchemy, with psycopg as its driver."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"

    def create(self) -> None:
        """Make the cluster."""
        command: list[str | Path] = [
            self._programs / "initdb",
            "--pgdata",
            self._folder,
            "--username",
            "postgres",
        ]
        command += ["--auth", "trust", "--no-locale", "--encoding", "UTF8", "--no-sync"]
        done = subprocess.run(
            command, user=self._user, cwd="/", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        command: list[str | Path] = [
            self._programs / "postgres",
            "-D",
            self._folder,
            "-p",
            str(self._port),
        ]
        command += ["-h", "127.0.0.1", "-k", self._folder, "-c", "max_connections=200"]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, user=self._user, cwd="/", stdout=log, stderr=log
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            said = (self._folder / "server.log").read_text(errors="replace")
            assert self._process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.05)

    def stop(self) -> None:
        """End the server; its open connections are cut."""
        if self._process is not None:
            # SIGINT is PostgreSQL's fast shutdown.
            self._process.send_signal(2)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Cut every connection, and come back on the same port with the same data."""
        self.stop()
        self.start()

    def _answers(self) -> bool:
        command: list[str | Path] = [
            self._programs / "pg_isready",
            "-q",
            "-h",
            "127.0.0.1",
            "-p",
            str(self._port),
        ]
        return subprocess.run(command, cwd="/", check=False).returncode == 0


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A running server, gone with all its data afterwards; skips where there can be none."""
    found = sorted(Path("/").glob(_PLACES.removeprefix("/")))
    if not found:
        pytest.skip(f"PostgreSQL is not installed: no {_PLACES}")
    user = _other_user() if os.geteuid() == 0 else None
    # Not below pytest's folder, which only its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="jevexp-postgres-"))
    if user is not None:
        shutil.chown(folder, user)
    server = Postgres(found[-1].parent, folder, free_port(), user)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def _other_user() -> str:
    for name in _USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    pytest.skip(f"PostgreSQL refuses root, and there is no user {' or '.join(_USERS)}")
