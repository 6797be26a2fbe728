"""One command line under both harnesses, and what of it has to be equal."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.cli import jevexp_process, only_run

CLOCK = {"ts", "latency_s", "prepare_s"}


def run_both(
    folder: Path, *arguments: str, upstream: Sequence[str] = (), **environment: str
) -> list[Path]:
    """The run directories of the native and of the pinned harness."""
    runs = []
    for name, harness in (("native", ()), ("upstream", upstream)):
        finished = jevexp_process(
            *arguments,
            f"harness={name}",
            *harness,
            "tracking=none",
            f"outputs={name}",
            cwd=folder,
            **environment,
        )
        assert finished.status == 0, finished.out + finished.err
        runs.append(only_run(folder / name))
    return runs


def records(run: Path) -> list[dict[str, Any]]:
    """The records without what the clock says."""
    lines = (run / "results.jsonl").read_text().splitlines()
    return [
        {name: value for name, value in json.loads(line).items() if name not in CLOCK}
        for line in lines
    ]


def summary(run: Path) -> dict[str, Any]:
    """The summary without what the clock says."""
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())
    parts = [found, *found["per_family"].values(), *found["splits"].values()]
    for part in parts:
        del part["latency"], part["latency_failures"]
    return found


def raw(run: Path) -> dict[str, str]:
    """The raw evidence, byte for byte."""
    return {path.name: path.read_text() for path in (run / "raw").iterdir()}


def ledger(run: Path) -> list[dict[str, Any]]:
    """The ledger's rows without times and made-up names."""
    lines = (run / "ledger.jsonl").read_text().splitlines()
    return [
        {
            name: value
            for name, value in json.loads(line).items()
            if name not in ("ts", "reservation_id")
        }
        for line in lines
    ]


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest."""
    found: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    return found
