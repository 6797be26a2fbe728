"""Killed in the middle with a real server, and resumed: the union is the uninterrupted run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jevexp.cli.main import main
from jevexp.core.record import Record
from jevexp.store import RunDirectory
from jevexp.verification import State, verify_run
from tests.crash.child import Kill, start

pytestmark = pytest.mark.live

# How many tasks are asked, and at which one it is killed: the large model needs half a second each.
EXTENT = {"tiny": (48, 20), "gemma": (6, 3)}
# What another run of the same model on the same tasks measures anew.
_MEASURED = {"ts", "latency_s", "prepare_s", "runtime", "raw_sha256"}


@pytest.fixture(params=EXTENT)
def command(request: pytest.FixtureRequest) -> Sequence[str]:
    """The demo tasks on a server that is started for them."""
    limit = f"caps.limit={EXTENT[request.param][0]}"
    server = ("backend=llama_cpp", "backend.server.threads=1")
    common = ("dataset=demo", *server, "tracking=none", "pricing=local", limit)
    if request.param == "gemma":
        # For what it needs and this machine may lack.
        request.getfixturevalue("gemma")
        return (*common, "model=gemma3_270m_q4km")
    gguf = request.getfixturevalue("tiny_gguf")
    return (*common, "model=unclaimed", "model.alias=tiny", f"backend.server.gguf={gguf}")


@pytest.fixture
def killed_at(request: pytest.FixtureRequest) -> int:
    return EXTENT[request.node.callspec.params["command"]][1]


def test_the_union_equals_an_uninterrupted_run(
    workplace: Path, command: Sequence[str], killed_at: int
) -> None:
    whole, killed, again = Path("whole"), Path("killed"), Path("again")
    assert main([*command, f"hydra.run.dir={whole}"]) == 0
    kill = Kill("between settle and record", killed_at)
    status = start([*command, f"hydra.run.dir={killed}"], Path("log"), kill).wait()
    assert status == -9, Path("log.out").read_text()
    assert verify_run(killed).state is State.INCOMPLETE
    assert len(records(killed)) == killed_at - 1
    repeated = [word for word in command if word.startswith("backend.server.gguf=")]
    assert main([f"resume={killed}", *repeated, f"hydra.run.dir={again}"]) == 0

    assert [fixed(one) for one in records(again)] == [fixed(one) for one in records(whole)]
    assert records(again)[: killed_at - 1] == records(killed)
    assert summary(again) == summary(whole)
    manifest = RunDirectory(again).read_manifest()
    assert manifest.resumed is not None
    assert len(manifest.resumed.adopted) == killed_at
    assert manifest.resumed.recovered == [records(whole)[killed_at - 1].task_id]
    assert manifest.fingerprint == RunDirectory(whole).read_manifest().fingerprint
    assert verify_run(again).state is State.VERIFIED


def records(run: Path) -> list[Record]:
    return list(RunDirectory(run).records())


def fixed(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.line().items() if name not in _MEASURED}


def summary(run: Path) -> Any:
    """The summary without its latencies."""

    def without(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        return {name: without(one) for name, one in part.items() if not name.startswith("latency")}

    summary = RunDirectory(run).read_summary()
    assert summary is not None
    return without(summary.model_dump(mode="json"))
