"""How a command line ends, whatever its verb raises."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jevexp.cli import verbs
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

    monkeypatch.setattr("jevexp.cli.verbs.list.main", verb)
    assert main(["list"]) == status


@pytest.mark.parametrize(
    ("given", "verb", "rest"),
    [
        ([], "run", []),
        (["dataset=demo"], "run", ["dataset=demo"]),
        (["run", "-m"], "run", ["-m"]),
        (["list", "--status", "complete"], "list", ["--status", "complete"]),
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

    for name in ("list", "run"):
        monkeypatch.setattr(f"jevexp.cli.verbs.{name}.main", noting(name))
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


def test_a_new_verb_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "weigh.py").write_text(
        '''"""`jevexp weigh RUN`: how heavy a run is."""


def main(arguments: list[str]) -> int:
    print("weighing", *arguments)
    return 5
'''
    )
    monkeypatch.setattr(verbs, "__path__", [*verbs.__path__, str(tmp_path)])

    monkeypatch.setitem(sys.modules, "jevexp.cli.verbs.weigh", None)
    monkeypatch.delitem(sys.modules, "jevexp.cli.verbs.weigh")
    assert main(["weigh", "this", "-x"]) == 5
    assert capsys.readouterr().out == "weighing this -x\n"
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["--help"])
    listed = capsys.readouterr().out.split("Verbs", 1)[1].split("\n\n", 1)[0].splitlines()
    assert "  weigh RUN               how heavy a run is" in listed
    assert [line.split()[0] for line in listed[1:]] == sorted([*verbs.verb_files()])


@pytest.mark.parametrize("verb", verbs.verb_files())
def test_every_verb_has_its_line_in_the_help(verb: str) -> None:
    (line,) = (line for line in verbs.verbs_help().splitlines() if line.split()[0] == verb)

    usage, description = line[:25], line[25:]
    assert usage.startswith(f"  {verb} ")
    assert description[0] == " "
    assert description[1].isalnum()
    assert len(line) <= 100
    assert "$" not in line, "Hydra would look up a name there"


def test_a_word_that_leads_out_of_the_verbs_is_no_verb(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["../console"]) == 2
    assert "../console: not an override" in capsys.readouterr().err
