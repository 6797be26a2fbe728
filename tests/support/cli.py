"""Runs jevexp as a person does: in this process, or in one of its own."""

import io
import logging
import os
import secrets
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from hydra.core.global_hydra import GlobalHydra

from jevexp.cli import compose
from jevexp.cli.main import main

# What Python itself shows nobody unless asked.
_NOT_SHOWN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


@dataclass(frozen=True)
class Finished:
    """What a command printed and how it ended."""

    status: int
    out: str
    err: str


def jevexp(*arguments: str, cwd: Path, **environment: str) -> Finished:
    """Run `jevexp ARGUMENTS` in `cwd`, in this process, which is left as it was.

    What it raises comes out of here: a traceback is a fault of the program.
    """
    out, err = _Output(), _Output()
    with _borrowed(cwd, environment), redirect_stdout(out), redirect_stderr(err):
        try:
            status: object = main(arguments)
        except SystemExit as left:
            # As the interpreter does with it.
            if not isinstance(left.code, int | None):
                print(left.code, file=sys.stderr)
            status = left.code if isinstance(left.code, int) else int(left.code is not None)
    assert isinstance(status, int)
    return Finished(status, out.text, err.text)


def jevexp_process(*arguments: str, cwd: Path, **environment: str) -> Finished:
    """Run `python -m jevexp` in `cwd` and wait for it.

    For what only a start of a process tells: its environment, its imports, what it starts itself.
    """
    done = subprocess.run(
        [sys.executable, "-m", "jevexp", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def start(*arguments: str, cwd: Path) -> "subprocess.Popen[str]":
    """Start `python -m jevexp` in `cwd`, for a test that sends it a signal."""
    return subprocess.Popen(
        [sys.executable, "-m", "jevexp", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def only_run(outputs: Path) -> Path:
    """The directory of the one run below an outputs folder."""
    (manifest,) = outputs.glob("20*/*/manifest.json")
    return manifest.parent


class _Output(io.TextIOWrapper):
    """A pipe's end as a process has it: bytes in UTF-8, and no terminal."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", write_through=True)

    @property
    def text(self) -> str:
        return self._bytes.getvalue().decode()


@contextmanager
def _borrowed(cwd: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """This process as a fresh one in `cwd`; afterwards everything is as it was."""
    loaded = set(sys.modules)
    with (
        patch.dict(os.environ, environment),
        patch.object(sys, "argv", ["jevexp"]),
        patch.object(sys, "path", ["", *sys.path]),
        # Made once a process: two runs of one second have directories of their own.
        patch.object(compose, "_LAUNCH_UID", secrets.token_hex(3)),
        warnings.catch_warnings(),
        _logging_restored(),
        chdir(cwd),
    ):
        for category in _NOT_SHOWN:
            warnings.simplefilter("ignore", category)
        GlobalHydra.instance().clear()
        try:
            yield
        finally:
            GlobalHydra.instance().clear()
            _forget_modules_below(cwd, loaded)


@contextmanager
def _logging_restored() -> Iterator[None]:
    """Hydra configures logging for the whole process."""
    known = [logging.root, *logging.root.manager.loggerDict.values()]
    before = [
        (logger, logger.handlers[:], logger.level, logger.disabled, logger.propagate)
        for logger in known
        if isinstance(logger, logging.Logger)
    ]
    try:
        yield
    finally:
        for logger, handlers, level, disabled, propagate in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.disabled, logger.propagate = disabled, propagate


def _forget_modules_below(folder: Path, loaded: set[str]) -> None:
    """A person's own module: the next test may have another one under the same name."""
    for name in sys.modules.keys() - loaded:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(folder.resolve()):
            del sys.modules[name]
