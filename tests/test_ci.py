"""What CI asks the second Python to run is there: with workers pytest passes over what is not."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_place_that_the_second_python_runs_is_there() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    places = re.search(r"places='([^']+)'", script)
    names = re.search(r"for name in ([\w ]+); do\n +places\+=\" (tests/\S+)\"", script)
    assert places
    assert names
    files = [names[2].replace("$name", name) for name in names[1].split()]
    named = [*places[1].split(), *files]
    assert len(named) >= 10
    assert [place for place in named if not (ROOT / place).exists()] == []
