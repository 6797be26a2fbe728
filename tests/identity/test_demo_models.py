"""What the shipped model options claim is what their files hold."""

from pathlib import Path

import pytest

from jevexp.backends.llama_cpp.weights import find_weights
from jevexp.core.identity import ClaimStatus, Level
from jevexp.identity import Observed, observe, reconcile
from jevexp.settings import ModelIdentity
from tests.support.compose import compose

GEMMA, SMOLLM = "gemma3_270m_q4km", "smollm2_135m_q4_1"


def claimed(option: str, *overrides: str) -> ModelIdentity:
    return compose("dataset=demo", f"model={option}", *overrides).model


@pytest.fixture(scope="module")
def files() -> dict[str, Observed]:
    found: dict[str, Path | None] = {name: find_weights(claimed(name)) for name in (GEMMA, SMOLLM)}
    return {name: observe({}, weights=path) for name, path in found.items()}


@pytest.mark.parametrize("option", [GEMMA, SMOLLM])
def test_every_claim_about_the_file_is_confirmed(option: str, files: dict[str, Observed]) -> None:
    report = reconcile(claimed(option), files[option])
    assert report.verdict is ClaimStatus.CONFIRMED
    proven = {
        name for name, field in report.fields.items() if field.status is ClaimStatus.CONFIRMED
    }
    assert proven >= {
        "weights.file",
        "weights.sha256",
        "weights.bytes",
        "quantization.label",
        "quantization.ftype",
        "quantization.tensor_types",
    }
    assert {finding.level for finding in report.findings} <= {Level.NOTE}


def test_gemma_as_another_type_is_contradicted(files: dict[str, Observed]) -> None:
    claim = claimed(GEMMA, "model.quantization.ftype=Q8_0")
    report = reconcile(claim, files[GEMMA])
    assert report.reason() == (
        "model.quantization.ftype: declared Q8_0, found Q4_K_M (file header)"
    )


def test_gemma_under_an_alias_of_another_type(files: dict[str, Observed]) -> None:
    def levels(*overrides: str) -> list[Level]:
        report = reconcile(claimed(*overrides), files[GEMMA])
        return [f.level for f in report.findings if f.code == "alias_quantization"]

    assert levels("unclaimed", "model.alias=gemma-q8_0") == [Level.WARNING]
    assert levels(GEMMA, "model.alias=gemma-q8_0") == [Level.EXPLAINED]
    assert levels(GEMMA) == []


def test_gemma_has_no_template_of_its_own(files: dict[str, Observed]) -> None:
    report = reconcile(claimed(GEMMA), files[GEMMA])
    assert [finding.code for finding in report.findings] == ["no_template"]
