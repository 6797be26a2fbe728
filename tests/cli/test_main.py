"""How a command line ends, whatever its verb raises."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jevexp.cli import listing, run
from jevexp.cli.main import main
from jevexp.errors import InputError
from jevexp.harness.interrupts import Interrupted


@pytest.mark.parametrize(
    ("raised", "status"),
    [
        (InputError("no such thing"), 2),
        (Interrupted(signal.SIGTERM), 143),
        (Interrupted(signal.SIGHUP), 129),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_ending_has_its_status(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException, status: int
) -> None:
    def verb(arguments: object) -> int:
        raise raised

    monkeypatch.setattr(listing, "main", verb)
    assert main(["list"]) == status


@pytest.mark.parametrize(
    ("given", "verb", "rest"),
    [
        ([], "run", []),
        (["dataset=demo"], "run", ["dataset=demo"]),
        (["run", "-m"], "run", ["-m"]),
        (["list", "--status", "complete"], "listing", ["--status", "complete"]),
    ],
)
@pytest.mark.parametrize("from_the_process", [False, True])
def test_the_first_word_may_be_a_verb(
    monkeypatch: pytest.MonkeyPatch,
    given: list[str],
    verb: str,
    rest: list[str],
    from_the_process: bool,
) -> None:
    called: list[tuple[str, list[str]]] = []

    def noting(name: str) -> Callable[[list[str]], int]:
        def verb_main(arguments: list[str]) -> int:
            called.append((name, arguments))
            return 7

        return verb_main

    for module in (listing, run):
        name = module.__name__.rpartition(".")[2]
        monkeypatch.setattr(module, "main", noting(name))
    monkeypatch.setattr(sys, "argv", ["jevexp", *given])
    assert main(None if from_the_process else given) == 7
    assert called == [(verb, rest)]


@pytest.mark.parametrize("words", [["data", "list"], ["plan", "dataset=demo"]])
def test_a_reader_who_leaves_costs_a_status_and_no_traceback(
    workplace: Path, words: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "jevexp", *words],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
