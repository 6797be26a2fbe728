"""Killed at task 20 of 48 with a real server, and resumed: the union is the uninterrupted run."""

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

KILLED_AT = 20
# What another run of the same model on the same tasks measures anew.
_MEASURED = {"ts", "latency_s", "prepare_s", "runtime", "raw_sha256"}


@pytest.fixture(params=["tiny", "gemma"])
def command(request: pytest.FixtureRequest) -> Sequence[str]:
    """The demo tasks on a server that is started for them."""
    common = ("dataset=demo", "backend=llama_cpp", "tracking=none", "pricing=local")
    if request.param == "gemma":
        # For what it needs and this machine may lack.
        request.getfixturevalue("gemma")
        return (*common, "model=gemma3_270m_q4km")
    gguf = request.getfixturevalue("tiny_gguf")
    return (*common, "model=unclaimed", "model.alias=tiny", f"backend.server.gguf={gguf}")


def test_the_union_equals_an_uninterrupted_run(workplace: Path, command: Sequence[str]) -> None:
    whole, killed, again = Path("whole"), Path("killed"), Path("again")
    assert main([*command, f"hydra.run.dir={whole}"]) == 0
    kill = Kill("between settle and record", KILLED_AT)
    status = start([*command, f"hydra.run.dir={killed}"], Path("log"), kill).wait()
    assert status == -9, Path("log.out").read_text()
    assert verify_run(killed).state is State.INCOMPLETE
    assert len(records(killed)) == KILLED_AT - 1
    assert main([f"resume={killed}", f"hydra.run.dir={again}"]) == 0

    assert [fixed(one) for one in records(again)] == [fixed(one) for one in records(whole)]
    assert records(again)[: KILLED_AT - 1] == records(killed)
    assert summary(again) == summary(whole)
    manifest = RunDirectory(again).read_manifest()
    assert manifest.resumed is not None
    assert len(manifest.resumed.adopted) == KILLED_AT
    assert manifest.resumed.recovered == [records(whole)[KILLED_AT - 1].task_id]
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

    return without(RunDirectory(run).read_summary())
