"""What a new tracker takes: its own module, its own settings, one line where trackers are listed.

The three are added to a copy of the program the way a person would. Runs and sweeps of that copy
are logged beside MLflow and without it, while both trackers work, and while one of them fails.
"""

import importlib
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from jevexp.settings import TRACKERS, Tracking
from tests.support.cli import Finished
from tests.support.copied_program import CopiedProgram
from tests.support.runs import tracking

SETTINGS = '''
"""A file with one JSON text a line."""

from typing import Literal

from jevexp.settings.base import TrackerSettings


class LinesTracking(TrackerSettings):
    """Appends to the file at `path`; `fault` is what every call says instead."""

    kind: Literal["lines"]
    path: str
    fault: str | None = None
'''

MODULE = '''
"""Appends what it is told to a file, one JSON text a line."""

import json
from pathlib import Path

from jevexp.tracking import NO_REPORT, Change, TrackedRun, Tracker


def make(settings, outputs):
    """The tracker."""
    return LinesTracker(settings, outputs)


class LinesTracker(Tracker):
    """The tracker."""

    def __init__(self, settings, outputs):
        self._settings = settings
        self._path = outputs / settings.path

    def check(self):
        """Where runs go."""
        return str(self._path)

    def log(self, directory, tasks=None, report=NO_REPORT):
        """Log a run."""
        manifest = directory.read_manifest()
        return self._append(
            kind="run",
            run=manifest.run,
            name=manifest.title,
            sweep=manifest.sweep,
            status=manifest.status,
            predicted=[record.predicted for record in directory.records()],
            gold=[task.gold for task in tasks],
            intervals=sorted(report.intervals()),
        )

    def runs(self, sweep):
        """The runs of a sweep."""
        lines = map(json.loads, self._path.read_text().splitlines())
        return [_tracked(line) for line in lines if line["sweep"] == sweep]

    def log_comparison(self, comparison):
        """Log a comparison."""
        return self._append(
            kind="comparison",
            run=comparison.sweep,
            name=comparison.name,
            sweep=None,
            runs=[directory.path.name for directory in comparison.runs],
            note=comparison.note(
                {run.path.name: f"lines:{run.path.name}" for run in comparison.runs}
            ),
        )

    def addresses(self, runs, comparisons=()):
        """A line for each."""
        return [f"{self._path}: {run.directory}" for run in (*runs, *comparisons)]

    def _append(self, **line):
        if self._settings.fault:
            raise RuntimeError(self._settings.fault)
        self._path.parent.mkdir(exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\\n")
        return _tracked(line, Change.CREATED)


def _tracked(line, change=Change.NONE):
    return TrackedRun(line["run"], "", line["name"], line["run"], change)
'''

LINE = '    "lines": TrackerEntry("jevexp.settings.lines:LinesTracking", "jevexp.tracking.lines"),'

DEMO = ("dataset=demo", "caps.limit=3", "backend.mode=noise")
# Every command stands in a folder of its scenario.
RUN, INTO = "hydra.run.dir={folder}/run", "hydra.sweep.dir={folder}/sweep"
OUTPUTS = "outputs={folder}/outputs"
NOWHERE = "http://127.0.0.1:9"
BESIDE = ("+tracking.also.notes={kind:lines,path:notes.jsonl}",)
FAULTY = ("+tracking.also.notes={kind:lines,path:notes.jsonl,fault:no space left}",)
ALONE = ("tracking=none", *BESIDE)
SWEEP = ("-m", *DEMO, "backend.seed=1,2")
SCENARIOS: dict[str, list[tuple[str, ...]]] = {
    "beside MLflow": [
        ("check", *DEMO, *BESIDE, OUTPUTS),
        (*DEMO, *BESIDE, OUTPUTS, RUN),
        (*SWEEP, *BESIDE, OUTPUTS, INTO),
    ],
    "alone": [(*DEMO, *ALONE, OUTPUTS, RUN), (*SWEEP, *ALONE, OUTPUTS, INTO)],
    "failing": [(*SWEEP, *FAULTY, OUTPUTS, INTO)],
    "beside an MLflow that is away": [
        (*DEMO, *BESIDE, f"tracking.uri={NOWHERE}", OUTPUTS, RUN),
        (*DEMO, "+tracking.also.notes={kind:lines,paht:x}"),
    ],
}


@dataclass(frozen=True)
class Scenario:
    """The folder that commands wrote into, and what came of each."""

    folder: Path
    finished: list[Finished]

    @property
    def outputs(self) -> Path:
        """The folder of runs and of what the trackers keep."""
        return self.folder / "outputs"


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scenario]:
    """What came of all commands, in one process of a copy of the program with the tracker in it."""
    program = CopiedProgram(tmp_path_factory.mktemp("program"))
    (program.package / "settings" / "lines.py").write_text(SETTINGS)
    (program.package / "tracking" / "lines.py").write_text(MODULE)
    program.add_line("settings/trackers.py", "TRACKERS = {", LINE)
    folders = {name: tmp_path_factory.mktemp("scenario") for name in SCENARIOS}
    commands = [
        [word.replace("{folder}", str(folders[name])) for word in command]
        for name, several in SCENARIOS.items()
        for command in several
    ]
    finished = iter(program.run(*commands))
    return {
        name: Scenario(folders[name], [next(finished) for _ in several])
        for name, several in SCENARIOS.items()
    }


def told(outputs: Path) -> list[dict[str, Any]]:
    """What the new tracker has got."""
    return [json.loads(line) for line in (outputs / "notes.jsonl").read_text().splitlines()]


def in_mlflow(outputs: Path) -> list[Mapping[str, str]]:
    """The tags of everything that MLflow has got."""
    with closing(sqlite3.connect(outputs / "mlflow.db")) as database:
        ids = [row[0] for row in database.execute("SELECT run_uuid FROM runs ORDER BY start_time")]
        of_run = "SELECT key, value FROM tags WHERE run_uuid = ?"
        return [dict(database.execute(of_run, [run_id]).fetchall()) for run_id in ids]


def test_it_is_told_of_a_run_and_of_a_sweep_beside_mlflow(
    scenarios: dict[str, Scenario],
) -> None:
    scenario = scenarios["beside MLflow"]
    outputs, run = scenario.outputs, scenario.folder / "run"
    checked, single, several = scenario.finished

    assert checked.status == single.status == several.status == 0, single.err + several.err
    assert f"ok      tracking  {outputs}/mlflow.db is made by the first run" in checked.out
    assert f"ok      notes     {outputs}/notes.jsonl" in checked.out
    first, *members, comparison = told(outputs)
    results = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    assert first["predicted"] == [result["predicted"] for result in results]
    assert (first["run"], first["status"], first["sweep"]) == ("run", "complete", None)
    assert len(first["gold"]) == 3
    assert "accuracy" in first["intervals"]
    names = [member["run"] for member in members]
    assert [member["sweep"] for member in members] == ["sweep"] * 2
    assert comparison["kind"] == "comparison"
    assert comparison["runs"] == names
    # It is given what the note needs to lead to the tracker's own addresses.
    assert all(f"](lines:{name})" in comparison["note"] for name in names)
    kept = in_mlflow(outputs)
    assert sorted(tags["jev.run"] for tags in kept) == sorted(["run", *names, "sweep"])
    assert all("jev.evidence_sha256" in tags for tags in kept)
    # What every tracker says of where to look stands below its name.
    lines = several.out.splitlines()
    assert lines.index("mlflow:") < lines.index("notes:")
    assert [f"{outputs}/notes.jsonl: {name}" for name in [*names, "sweep"]] == lines[-3:]


def test_it_is_told_alone(scenarios: dict[str, Scenario]) -> None:
    scenario = scenarios["alone"]
    outputs = scenario.outputs
    single, several = scenario.finished

    assert single.status == several.status == 0, single.err + several.err
    assert [line["kind"] for line in told(outputs)] == ["run", "run", "run", "comparison"]
    assert not (outputs / "mlflow.db").exists()
    assert "mlflow" not in single.out + several.out
    manifest = json.loads((scenario.folder / "run" / "manifest.json").read_text())
    assert manifest["config"]["resolved"]["tracking"]["also"] == {
        "notes": {"kind": "lines", "path": "notes.jsonl", "fault": None}
    }


def test_its_failure_is_told_by_name_and_costs_neither_the_run_nor_mlflow(
    scenarios: dict[str, Scenario],
) -> None:
    scenario = scenarios["failing"]
    (several,) = scenario.finished

    assert several.status == 0, several.err
    warnings = [line for line in several.out.splitlines() if line.startswith("warning")]
    expected = "warning: notes: not tracked: RuntimeError: no space left"
    # Both runs, and the question for the sweep's runs, which finds no file.
    assert warnings[:2] == [expected] * 2
    assert warnings[2].startswith("warning: notes: not tracked: FileNotFoundError: ")
    assert len(warnings) == 3
    assert all((path / "checksums.sha256").is_file() for path in scenario.folder.glob("sweep/*-*"))
    kept = in_mlflow(scenario.outputs)
    assert sorted(tags["jev.kind"] for tags in kept) == ["comparison", "run", "run"]
    assert all("jev.evidence_sha256" in tags for tags in kept)


def test_it_is_told_while_mlflow_cannot_be_reached(scenarios: dict[str, Scenario]) -> None:
    scenario = scenarios["beside an MLflow that is away"]
    single, mistyped = scenario.finished

    assert single.status == 0, single.err
    assert f"warning: mlflow: not tracked: {NOWHERE}: cannot be reached" in single.out
    assert f"log it later with: jevexp export {scenario.folder / 'run'}" in single.out
    assert [line["run"] for line in told(scenario.outputs)] == ["run"]
    assert mistyped.status == 2
    assert "tracking.also.notes.path: missing" in mistyped.err


def test_every_kind_of_tracker_is_listed_under_its_kind() -> None:
    for kind, entry in TRACKERS.items():
        module, _, name = entry.settings_class.partition(":")
        settings = getattr(importlib.import_module(module), name)
        assert kind in get_args(settings.model_fields["kind"].annotation)
        assert callable(importlib.import_module(entry.module).make)


def test_no_tracker_takes_the_name_of_the_first_one() -> None:
    fields = tracking().model_dump(mode="json", exclude={"also"})
    with pytest.raises(ValueError, match="mlflow is the name of the first tracker"):
        Tracking.model_validate(fields | {"also": {"mlflow": fields}})
    assert list(Tracking.model_validate(fields | {"also": {"team": fields}}).trackers) == [
        "mlflow",
        "team",
    ]
