"""Two runs have one fingerprint exactly when they measured the same thing."""

import re
from pathlib import Path
from typing import Any

import pytest

from jevexp.core.identity import Fingerprint
from jevexp.core.json import dumps
from jevexp.identity import fingerprint, observe, reconcile
from jevexp.settings import ModelIdentity
from tests.identity.servers import said_by
from tests.weights import gguf_bytes


def model(**claims: Any) -> ModelIdentity:
    return ModelIdentity.model_validate({"name": "m", "alias": "served", **claims})


def taken(
    weights: Path | None = None, claims: dict[str, Any] | None = None, **said: Any
) -> Fingerprint:
    description = said_by(**{"model_path": None, **said})
    report = reconcile(model(**(claims or {})), observe(description, weights=weights))
    return fingerprint(description, report)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    return gguf_bytes.quantized(tmp_path)


def test_a_fingerprint_is_short_and_keeps_its_inputs(weights: Path) -> None:
    found = taken(weights)
    assert re.fullmatch(r"jf1-[0-9a-f]{16}", found.value)
    assert found.version == 1
    assert found.inputs["weights"]["sha256"] == observe({}, weights=weights).value("weights.sha256")
    assert found.inputs["context"] == 4096
    assert found.inputs["readout"] == {"version": "1", "bias": 12.0, "extra_probs": 4}
    assert "served" not in dumps(found.inputs)
    assert taken(weights) == found


@pytest.mark.parametrize(
    "same",
    [
        {"base_url": "http://127.0.0.1:9999"},
        {"base_url": "http://10.1.2.3:8080"},
        {"model": "renamed", "model_alias": "renamed"},
        {"model_path": "/elsewhere/other.gguf"},
        {"build_info": "b1"},
        {"total_slots": 4},
        {"managed": True},
        {"ftype": None, "n_params": None},
    ],
)
def test_where_and_under_which_name_makes_no_difference(
    weights: Path, same: dict[str, Any]
) -> None:
    assert taken(weights, **same).value == taken(weights).value


def test_a_moved_file_makes_no_difference(weights: Path) -> None:
    before = taken(weights)
    assert taken(weights.rename(weights.with_name("moved.gguf"))).value == before.value


@pytest.mark.parametrize(
    "other",
    [
        {"n_ctx": 8192},
        {"chat_template_sha256": "d" * 64},
        {"readout": {"version": "2", "bias": 12.0, "extra_probs": 4}},
        {"readout": {"version": "1", "bias": 10.0, "extra_probs": 4}},
        {"prompt_version": "2"},
        {"template_kwargs": {"enable_thinking": True}},
        {"managed": True, "cache_type_k": "q8_0"},
        {"managed": True, "cache_type_v": "q8_0"},
        {"kind": "hosted"},
    ],
)
def test_another_measurement_has_another_fingerprint(weights: Path, other: dict[str, Any]) -> None:
    assert taken(weights, **other).value != taken(weights).value


def test_other_weights_have_another_fingerprint(weights: Path, tmp_path: Path) -> None:
    before = taken(weights)
    assert taken(gguf_bytes.quantized(tmp_path, 15)).value != before.value


def test_other_further_files_have_another_fingerprint(weights: Path) -> None:
    values = {
        taken(weights, {"files": files}).value
        for files in ({}, {"projector": {"sha256": "0" * 64}}, {"projector": {"sha256": "1" * 64}})
    }
    assert len(values) == 3


def test_what_is_not_observed_is_taken_as_declared(weights: Path) -> None:
    declared = taken(weights, {"cache_type_k": "q8_0", "cache_type_v": "q8_0"})
    started = taken(weights, managed=True, cache_type_k="q8_0", cache_type_v="q8_0")
    assert declared.value == started.value != taken(weights).value


@pytest.mark.parametrize("other", [{"ftype": "Q8_0"}, {"n_params": 7}, {"size": 7}, {"n_vocab": 7}])
def test_weights_that_cannot_be_read_still_differ(other: dict[str, Any]) -> None:
    assert taken(**other).value != taken().value
    assert taken().inputs["weights"]["sha256"] is None
    assert taken(model="renamed", model_alias=None).value == taken().value


def test_a_declared_hash_stands_in_for_one_that_cannot_be_observed() -> None:
    values = {taken(None, {"weights": {"sha256": digit * 64}}).value for digit in "01"}
    assert len(values | {taken().value}) == 3


FACTS = {"quantization.ftype": "Q2_K", "n_params": 513, "tensor_bytes": 172, "n_vocab": 262144}


def test_a_declared_hash_is_never_one_that_was_observed(weights: Path) -> None:
    claims = {"weights": {"sha256": "0" * 64}}
    assert taken(None, claims).inputs["weights"] == {
        "sha256": None,
        "declared_sha256": "0" * 64,
        **FACTS,
    }
    assert taken().inputs["weights"] == {"sha256": None, "declared_sha256": None, **FACTS}
    # Nothing was observed at all: what is claimed still does not count as that.
    silent = dict.fromkeys(("ftype", "n_params", "size", "n_vocab"))
    assert taken(None, claims, **silent).inputs["weights"] == {
        "sha256": None,
        "declared_sha256": "0" * 64,
        **dict.fromkeys(FACTS),
    }
    # One that was observed stands alone, whatever is claimed.
    observed = observe({}, weights=weights).value("weights.sha256")
    assert taken(weights, claims).inputs["weights"] == {"sha256": observed}


def test_every_input_is_kept_and_the_value_is_that_of_earlier_runs() -> None:
    found = taken(
        None, {"files": {"projector": {"sha256": "1" * 64}}, "cache_type_k": "q8_0"}, n_ctx=8192
    )
    assert found.inputs == {
        "backend": "llama_cpp",
        "weights": {"sha256": None, "declared_sha256": None, **FACTS},
        "files": {"projector": "1" * 64},
        "chat_template_sha256": "c" * 64,
        "context": 8192,
        "cache_type_k": "q8_0",
        "cache_type_v": None,
        "readout": {"version": "1", "bias": 12.0, "extra_probs": 4},
        "prompt_version": "1",
        "template_kwargs": {"enable_thinking": False},
    }
    assert (found.version, found.value) == (1, "jf1-483e5b276a2752bb")


def test_hosted_models_differ_by_what_they_call_themselves() -> None:
    values = {taken(kind="hosted", model=name).value for name in ("jev-1.12", "jev-1.13")}
    assert len(values) == 2
    assert taken(kind="hosted").inputs["weights"] == {"sha256": None, "model": "served"}


def test_any_description_has_a_fingerprint() -> None:
    for description in ({}, {"kind": float("nan"), "readout": object()}):
        report = reconcile(model(), observe(description))
        assert fingerprint(description, report).value.startswith("jf1-")


def test_several_requests_at_once_are_another_measurement_and_one_is_the_old_one() -> None:
    report = reconcile(model(), observe({}))
    one = fingerprint({}, report)
    assert fingerprint({}, report, 1) == one
    assert "concurrency" not in one.inputs
    several = {number: fingerprint({}, report, number) for number in (2, 3, 4, 8)}
    for number, found in several.items():
        assert found.inputs == one.inputs | {"concurrency": number}
    assert len({one.value, *(found.value for found in several.values())}) == 5


def test_the_route_and_its_isolation_are_measured(weights: Path) -> None:
    each = {"version": "1", "route": "native", "isolation": "each"}
    values = {
        taken(weights, readout=readout).value
        for readout in (each, each | {"isolation": "none"}, {"version": "1", "bias": 12.0})
    }
    assert len(values) == 3


def test_without_a_file_an_alias_is_held_against_the_claim() -> None:
    claims: dict[str, Any] = {"alias": "m-q4_0", "quantization": {"ftype": "Q8_0"}}
    report = reconcile(model(**claims), observe({}))
    (finding,) = [found for found in report.findings if found.code == "alias_quantization"]
    assert (finding.level, finding.message) == (
        "explained",
        "'m-q4_0' says Q4_0, Q8_0 is declared, as declared",
    )
