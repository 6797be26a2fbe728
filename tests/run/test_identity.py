"""Whoever is not the declared model is asked nothing, unless that is only to be recorded."""

from pathlib import Path
from typing import Any

import pytest

from jevexp.run import planning, running
from jevexp.store import RunDirectory, RunStatus
from tests.run.resume.sessions import Named, right
from tests.support.compose import compose
from tests.support.in_process import Silent

OTHER = ("backend=python", "backend.factory=patched.in:test", "+model.quantization.ftype=Q8_0")


class Observed(Named):
    """Says how its weights are stored, as a llama.cpp server does."""

    def describe(self) -> dict[str, Any]:
        return {"kind": "llama_cpp", "model": "m-1", "ftype": "Q2_K - Medium"}


@pytest.mark.parametrize(
    ("identity", "status", "asked"), [("strict", "refused", 0), ("record", "complete", 3)]
)
def test_a_contradicted_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, identity: str, status: str, asked: int
) -> None:
    provider = Observed(right)
    monkeypatch.setattr(planning, "make_backend", lambda *_: provider)
    settings = compose(
        "dataset=demo", "caps.limit=3", "tracking=none", *OTHER, f"identity={identity}"
    )
    launch = planning.Launch(tmp_path / "run")
    running.run(planning.plan(settings), launch, Silent(), lambda *_: None)

    manifest = RunDirectory(launch.directory).read_manifest()
    assert manifest.status is RunStatus(status)
    assert len(provider.received) == asked
    assert manifest.identity is not None
    assert manifest.identity.fields["quantization.ftype"].status == "contradicted"
    assert manifest.message == (
        "identity: model.quantization.ftype: declared Q8_0, found Q2_K (server); correct the "
        "claim, or set identity=record"
        if identity == "strict"
        else None
    )
