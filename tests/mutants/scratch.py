"""Copies of the repository, in which files may be changed and tests run."""

import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Scratch:
    """One copy, without what git ignores; the tests in it import the program in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        self._names = [name for name in listed.stdout.decode().split("\0") if name]
        for name in self._names:
            if (ROOT / name).is_file():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, path / name)

    def digest(self) -> str:
        """Changes with every file of the program and the tests."""
        digest = hashlib.sha256()
        for name in sorted(self._names):
            if name.startswith(("src/", "tests/", "conf/")) and (self.path / name).is_file():
                digest.update(f"{name}\0".encode() + (self.path / name).read_bytes())
        return digest.hexdigest()

    def environment(self) -> dict[str, str]:
        """Of a process that runs tests here."""
        # Before the installed program, which is the working tree.
        return {**os.environ, "PYTHONPATH": str(self.path / "src")}

    def run(self, tests: Sequence[str], timeout_s: float) -> int | None:
        """Pytest's exit status, None when it took too long."""
        chosen = self.path / "chosen-tests"
        chosen.write_text("\n".join(tests))
        options = ("-x", "-q", "--no-header", "-p", "no:cacheprovider")
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, f"@{chosen}"],
            cwd=self.path,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Also what the tests had started themselves.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    @contextmanager
    def changed(self, path: Path, text: str) -> Iterator[None]:
        """A file with another text, for as long as this is open."""
        file = self.path / path
        before = file.read_text()
        self._write(file, text)
        try:
            yield
        finally:
            self._write(file, before)

    @staticmethod
    def _write(file: Path, text: str) -> None:
        # Compiled code is told from a change by size and second, which may be the same.
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
        file.write_text(text)
        os.utime(file, (time.time(),) * 2)
