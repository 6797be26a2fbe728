"""What ran: versions, interpreter, platform and the state of jevexp's own checkout."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import jevexp
from jevexp.store.manifest import Software

# What a result can depend on.
PACKAGES = (
    "gguf",
    "httpx",
    "hydra-core",
    "jevbench",
    "judgevet",
    "mlflow",
    "omegaconf",
    "pydantic",
    "xllamacpp",
)


def describe_software() -> Software:
    """Collect it; null for what is not installed or not known."""
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain") if commit else None
    return Software(
        jevexp=jevexp.__version__,
        git_commit=commit,
        git_dirty=None if changes is None else bool(changes),
        python=platform.python_version(),
        platform=platform.platform(),
        packages={name: _version(name) for name in PACKAGES},
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """The output of git in jevexp's checkout; None when it was not installed from one."""
    source = Path(jevexp.__file__).parents[1]
    if not (source.parent / ".git").exists():
        return None
    # Inside of a hook they name the repository that the hook is of.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(source), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
