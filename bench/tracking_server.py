"""How long many workers take to log through one MLflow server, and whether all arrives.

The server, its PostgreSQL and the workers are on this machine; artifacts go through the server.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.figures import figure
from tests.support.mlflow_server import client_of, mlflow_server
from tests.support.postgres import postgres
from tests.support.runs import make_run, tracking
from tests.support.workers import TASKS, log_from_workers

from jevexp.tracking.mlflow.environment import mlflow_environment

RUNS = 64
WORKERS = 8
# manifest, summary, results, checksums, log, configuration, and the folder of the table
FILES = 7


def main() -> int:
    """Log, read back, print; 0 when every run is there and complete."""
    with tempfile.TemporaryDirectory() as folder, postgres() as database:
        place = Path(folder)
        runs = [make_run(place / f"run{number}", TASKS).path for number in range(RUNS)]
        with mlflow_server(place, database=database.url, workers=2) as uri:
            started = time.monotonic()
            said = Counter(log_from_workers(runs, tracking(uri=uri, timeout_s=60.0), WORKERS))
            seconds = time.monotonic() - started
            statuses, files = _read_back(uri)
    print(f"{WORKERS} workers, {RUNS} runs: {seconds:.1f} s, {seconds / RUNS:.2f} s a run")
    print(f"said {dict(said)}; statuses {dict(statuses)}; artifacts {dict(files)}")
    complete = said["logged"] == statuses["FINISHED"] == files[FILES] == RUNS
    figure(
        f"{RUNS} runs by {WORKERS} workers through one server",
        f"{seconds:.0f} s",
        "all there",
        met=complete,
    )
    return 0 if complete else 1


def _read_back(uri: str) -> tuple[Counter[str], Counter[int]]:
    """How many runs have which status, and how many of them so many artifacts."""
    with mlflow_environment(60):
        client = client_of(uri)
        experiment = client.get_experiment_by_name("jevexp").experiment_id
        found = client.search_runs([experiment], max_results=1000)
        artifacts = Counter(len(client.list_artifacts(run.info.run_id)) for run in found)
    return Counter(run.info.status for run in found), artifacts


if __name__ == "__main__":
    # The workers' processes import this file too.
    sys.exit(main())
