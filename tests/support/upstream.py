"""A stand-in for the pinned harness's package, installed or as a git checkout."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

STANDIN = Path(__file__).parents[1] / "harness" / "upstream" / "standin"
REPOSITORY = "https://github.com/fstandhartinger/jevbench"


def install(site: Path, direct_url: dict[str, Any] | str | None, version: str = "1.0.0") -> Path:
    """Install the stand-in into `site`, with or without a PEP 610 record."""
    shutil.copytree(STANDIN, site, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    info = site / f"jevbench-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: jevbench\nVersion: {version}\n")
    if direct_url is not None:
        text = direct_url if isinstance(direct_url, str) else json.dumps(direct_url)
        (info / "direct_url.json").write_text(text)
    return site


def from_git(commit: str) -> dict[str, Any]:
    """The PEP 610 record of an installation from git."""
    return {"url": REPOSITORY, "vcs_info": {"vcs": "git", "commit_id": commit}}


def make_checkout(path: Path) -> str:
    """Make a git repository of the stand-in; returns its commit."""
    shutil.copytree(STANDIN, path, ignore=shutil.ignore_patterns("__pycache__"))
    git(path, "init", "--quiet")
    git(path, "add", ".")
    git(path, "commit", "--quiet", "--message", "stand-in")
    return git(path, "rev-parse", "HEAD")


def git(path: Path, *arguments: str) -> str:
    """Run git as somebody without a configuration."""
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=no")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        ["git", "-C", str(path), *who, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=environment | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
    ).stdout.strip()
