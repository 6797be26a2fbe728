"""A sweep is the same under every launcher, also when a process of it is killed."""

import json
import os
import shutil
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.compose import LAUNCHER_EXTRAS, compose_command
from jevexp.cli.run_view import report_sweep
from jevexp.cli.verbs.run import wait_for_runs
from jevexp.errors import InputError
from jevexp.untrusted.console import SafeConsole
from tests.support.cli import start
from tests.support.runs import make_killed_run, make_run, noul_tasks

SWEEP = ("-m", "dataset=demo", "tracking=none", "backend.mode=noise", "caps.limit=12")
LAUNCHERS = [
    pytest.param(["hydra/launcher=cores", "hydra.launcher.n_jobs=2"], id="joblib"),
    pytest.param(["hydra/launcher=jobs"], id="submitit"),
    pytest.param(
        ["hydra/launcher=ray_tasks", "hydra.launcher.ray.init.num_cpus=2"],
        id="ray",
        marks=[
            pytest.mark.live,
            pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra of that name"),
        ],
    ),
]


def writer_of(results: Path) -> int:
    """The process that has a run's results open."""
    for process in Path("/proc").glob("[0-9]*/fd"):
        try:
            files = [str(file.readlink()) for file in process.iterdir()]
        except OSError:
            continue
        if str(results) in files:
            return int(process.parent.name)
    raise AssertionError(f"nobody writes {results}")


def manifests(workplace: Path) -> list[dict[str, Any]]:
    found = workplace.glob("outputs/sweeps/20*/*/*/manifest.json")
    return [json.loads(path.read_text()) for path in sorted(found)]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds the process in /proc")
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_killed_process_is_one_failed_run(launcher: list[str], workplace: Path) -> None:
    process = start(*SWEEP, "backend.seed=1,2,3", "backend.latency_s=0.2", *launcher, cwd=workplace)
    deadline = time.monotonic() + 120
    while not (found := list(workplace.glob("outputs/sweeps/20*/*/1-*/raw/*"))):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(writer_of(found[0].parents[1] / "results.jsonl"), signal.SIGKILL)
    out, _ = process.communicate(timeout=240)

    assert process.returncode == 1, out
    first, killed, last = manifests(workplace)
    assert [one["status"] for one in (first, killed, last)] == ["complete", "running", "complete"]
    assert {one["sweep"] for one in (first, killed, last)} == {found[0].parents[2].name}
    assert len({one["ledger"]["path"] for one in (first, killed, last)}) == 1
    assert f"{killed['run']}: killed: " in out
    assert "2 of 3 runs complete" in out
    assert f"go on with it: jevexp resume={found[0].parents[2].relative_to(workplace)}" in out
    rows = [line.split() for line in out.splitlines() if "/12 " in line and "declared" in line]
    assert [(row[0], row[-1]) for row in rows] == [
        ("0", "complete"),
        ("1", "killed"),
        ("2", "complete"),
    ]


def left_behind(made_in: Path, path: Path, *, attempted: int) -> Path:
    """What a killed process left at `path`: a copy, as this process holds the one that it made."""
    made = make_killed_run(made_in / path.name, noul_tasks(4), attempted=attempted)
    return Path(shutil.copytree(made.path, path))


def test_lost_runs_are_in_the_table(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tasks = noul_tasks(4)
    make_run(tmp_path / "0-demo", tasks, sweep=tmp_path.name)
    left_behind(tmp_path_factory.mktemp("made"), tmp_path / "2-demo", attempted=3)
    (tmp_path / ".submitit").mkdir()

    status = report_sweep(SafeConsole(width=150, soft_wrap=True), tmp_path, 4)

    said = capsys.readouterr().out.splitlines()
    assert status == 1
    rows = [line.split() for line in said if line.lstrip()[:1].isdigit()]
    assert [(row[0], row[1], row[-1]) for row in rows[:2]] == [
        ("0", "4/4", "complete"),
        ("2", "3/4", "killed"),
    ]
    assert "2-demo: killed: 3 of 4 tasks answered and valid, 3 attempted" in said
    assert "1 of 4 runs complete" in said
    assert "2 never began" in said
    assert not [line for line in said if "submitit" in line]


def test_a_launcher_that_gave_up_is_waited_for_until_nothing_is_written(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jevexp.cli.verbs.run._QUIET_S", 0.3)
    run = left_behind(tmp_path_factory.mktemp("made"), tmp_path / "0-demo", attempted=1)
    # Somebody still writes it, as a run does that holds its results.
    holder = subprocess.Popen(["flock", str(run / "results.jsonl"), "sleep", "1.5"])
    time.sleep(0.2)
    started = time.monotonic()
    wait_for_runs(tmp_path, 2)
    holder.wait()
    assert time.monotonic() - started >= 1.0


def test_a_launcher_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from hydra._internal.utils import get_args_parser

    monkeypatch.setitem(LAUNCHER_EXTRAS, "cluster", "clusters")
    arguments = get_args_parser().parse_args(["-m", "hydra/launcher=cluster"])
    with pytest.raises(InputError) as caught:
        compose_command(arguments)
    assert str(caught.value) == (
        "hydra/launcher: cluster is not installed here; pip install 'jevexp[clusters]'"
    )
