"""What jevexp and some of its extras need, one a line, for pip's --requirement.

pip checks hashes only where everything that it installs has one. A checkout has none, so what it
needs is installed before it: `python tools/requirements.py dev,bridge`.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def requirements(pyproject: dict[str, Any], extras: str) -> Iterator[str]:
    """Requirements of the project and of extras that commas separate."""
    project = pyproject["project"]
    yield from project["dependencies"]
    for extra in extras.split(","):
        for requirement in project["optional-dependencies"][extra]:
            # An extra may take others in: jevexp[demo,postgres].
            own, bracket, others = requirement.partition(f"{project['name']}[")
            if bracket and not own:
                yield from requirements(pyproject, others.rstrip("]"))
            else:
                yield requirement


if __name__ == "__main__":
    given = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    print("\n".join(dict.fromkeys(requirements(given, sys.argv[1]))))
