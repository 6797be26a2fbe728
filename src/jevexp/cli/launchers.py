"""Hydra's launchers: which extra brings each of them, and what to do when one gives up."""

import time
from pathlib import Path

from jevexp.store import RunDirectory
from jevexp.store.checksums import CHECKSUMS
from jevexp.store.finding import sweep_members

# Longer than a started process needs until it has its directory.
_QUIET_S = 10.0
_POLL_S = 0.2
# By the plugins' own options, which ours build on.
EXTRAS = {"joblib": "parallel", "submitit_local": "slurm", "submitit_slurm": "slurm", "ray": "ray"}


def wait_for_runs(sweep: Path, planned: int) -> None:
    """Wait until no run of a sweep is written any more, though nobody waits for them.

    A launcher raises what its first lost worker raises, while others may still be at work.
    """
    last_seen = time.monotonic()
    while time.monotonic() - last_seen < _QUIET_S:
        runs = [RunDirectory(path) for path in sweep_members(sweep)]
        if any(run.in_use for run in runs):
            last_seen = time.monotonic()
        elif sum((run.path / CHECKSUMS).exists() for run in runs) == planned:
            return
        time.sleep(_POLL_S)
