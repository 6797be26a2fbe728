"""What the README tells people to type is taken by the command line."""

import re
import shlex
from pathlib import Path

import pytest
from hydra._internal.utils import get_args_parser

from jevexp.cli.compose import compose_command
from jevexp.cli.main import main

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
# Continued lines are one; what follows two blanks and a # is a remark.
LINES = re.findall(r"^    jevexp (.+?)(?: {2,}#.*)?$", README.replace("\\\n", " "), re.M)
COMMANDS = [shlex.split(line) for line in LINES]
RUNS = [words for words in COMMANDS if words[0] == "-m" or "=" in words[0]]
VERBS = [words for words in COMMANDS if words not in RUNS and words != ["--help"]]
COMPOSED = [
    # The option that `jevexp identify` writes in the README.
    [word.replace("my_model", "fake") for word in words if word not in ("plan", "check")]
    for words in COMMANDS
    if (words in RUNS or words[0] in ("plan", "check")) and words != ["resume=RUN"]
]


def test_the_readme_shows_runs_and_verbs() -> None:
    assert len(RUNS) >= 8
    assert {words[0] for words in VERBS} >= {"check", "compare", "gate", "plan", "verify"}


@pytest.mark.parametrize("words", COMPOSED, ids=" ".join)
def test_a_run_of_the_readme_composes(words: list[str], workplace: Path) -> None:
    composition = compose_command(get_args_parser().parse_intermixed_args(words))
    assert composition.is_sweep is ("-m" in words)
    assert len(composition.settings) >= (2 if "-m" in words else 1)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_a_verb_of_the_readme_has_the_options_that_are_shown(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([words[0], "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert [word for word in words[1:] if word.startswith("-") and word not in text] == []
