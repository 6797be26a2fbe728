"""Runs jevexp as a person does: in a process of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """What a command printed and how it ended."""

    status: int
    out: str
    err: str


def jevexp(*arguments: str, cwd: Path, **environment: str) -> Finished:
    """Run `python -m jevexp` in `cwd` and wait for it."""
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
