"""Python without the current folder among the places where modules are looked for.

The current folder may be somebody else's run directory, and a file in it may be called json.py.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Any text does; this one says that it was set here.
_SAFE_PATH = "PYTHONSAFEPATH"
_OURS = "jevexp"


def python_module(name: str) -> list[str]:
    """The command that runs an installed module as a child."""
    return [sys.executable, "-P", "-m", name]


@contextmanager
def safe_environment() -> Iterator[None]:
    """Meanwhile, also Python that a library of ours starts leaves the current folder out."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = before or _OURS
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]


def leave_safe_environment() -> None:
    """In a child that was started so: what it starts may be a person's own program."""
    if os.environ.get(_SAFE_PATH) == _OURS:
        del os.environ[_SAFE_PATH]


def leave_out_current_folder() -> None:
    """Undo what `python -m` did to this process: it puts the current folder first."""
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
        del sys.path[0]
