"""A copy of the program, to which a test adds files as a person would, and commands run with it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jevexp
from jevexp.cli import conf_dir
from tests.support.cli import Finished

_STEPS = """
import contextlib, io, json, sys
from jevexp.cli.main import main
done = []
for command in json.loads(sys.argv[1]):
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(command)
    done.append((status, out.getvalue(), errors.getvalue()))
print(json.dumps(done))
"""


class CopiedProgram:
    """The program below a folder: `package` is its jevexp, `conf` its configuration."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.package = shutil.copytree(
            Path(jevexp.__file__).parent,
            folder / "src" / "jevexp",
            ignore=shutil.ignore_patterns("conf"),
        )
        self.conf = shutil.copytree(conf_dir(), folder / "conf")

    def add_line(self, file: str, after: str, line: str) -> None:
        """Add a line to a file of the package, behind one that ends with `after`."""
        path = self.package / file
        before = path.read_text()
        changed = before.replace(f"{after}\n", f"{after}\n{line}\n", 1)
        assert len(changed.splitlines()) == len(before.splitlines()) + 1
        path.write_text(changed)

    def run(self, *commands: list[str]) -> list[Finished]:
        """What came of each command, all in one process and in the folder."""
        done = subprocess.run(
            [sys.executable, "-c", _STEPS, json.dumps(commands)],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(self._folder / "src"), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=True,
        )
        return [Finished(*finished) for finished in json.loads(done.stdout.splitlines()[-1])]
