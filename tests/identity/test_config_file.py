"""What was observed becomes a model option that is confirmed."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from jevexp.backends.llama_cpp.weights import find_weights
from jevexp.core.identity import ClaimStatus, Source
from jevexp.identity import Observed, model_config, observe, reconcile
from jevexp.settings import ModelIdentity
from tests.identity.servers import said_by, says
from tests.support.compose import compose
from tests.support.tiny_gguf import write_tiny_gguf
from tests.weights import gguf_bytes


def composed(text: str, folder: Path) -> ModelIdentity:
    """The option as a person's own configuration folder offers it."""
    option = folder / "conf" / "model" / "mine.yaml"
    option.parent.mkdir(parents=True)
    option.write_text(text, encoding="utf-8")
    return compose("dataset=demo", "model=mine", "--config-dir", str(folder / "conf")).model


def loaded(text: str) -> ModelIdentity:
    """The option alone, without looking for defaults."""
    whole: Any = OmegaConf.to_container(OmegaConf.create(text), resolve=True)
    del whole["defaults"]
    return ModelIdentity.model_validate(whole)


def test_a_file_becomes_an_option_that_is_confirmed(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path / "tiny-f32.gguf")
    seen = observe({}, weights=path)
    model = composed(model_config(seen, "mine"), tmp_path)
    assert (model.name, model.alias) == ("mine", "tiny-f32")
    assert model.quantization.ftype == model.quantization.label == "F32"
    assert find_weights(model) == path
    report = reconcile(model, seen)
    assert report.verdict is ClaimStatus.CONFIRMED
    assert (report.findings, report.contradictions) == ([], {})
    claimed = {n: f.status for n, f in report.fields.items() if f.declared is not None}
    assert set(claimed.values()) == {ClaimStatus.CONFIRMED, ClaimStatus.DECLARED_ONLY}
    assert [name for name, found in claimed.items() if found is ClaimStatus.DECLARED_ONLY] == [
        "alias"
    ]


@pytest.mark.parametrize(("n_ctx", "context"), [(63, None), (64, 64)])
def test_a_context_is_claimed_from_the_least_that_a_claim_may_be(
    tmp_path: Path, n_ctx: int, context: int | None
) -> None:
    seen = observe(said_by(base_url="http://10.0.0.7:8080", n_ctx=n_ctx))
    assert composed(model_config(seen, "mine"), tmp_path).context == context


def test_a_server_becomes_an_option_that_is_confirmed(tmp_path: Path) -> None:
    seen = observe(said_by(base_url="http://10.0.0.7:8080"))
    model = composed(model_config(seen, "mine"), tmp_path)
    assert (model.alias, model.context) == ("served", 4096)
    assert model.weights.path is None
    report = reconcile(model, seen)
    assert report.verdict is ClaimStatus.CONFIRMED
    claimed = {f.status for f in report.fields.values() if f.declared is not None}
    assert claimed == {ClaimStatus.CONFIRMED}


def test_everything_a_managed_server_does_is_declared(tmp_path: Path) -> None:
    path = gguf_bytes.quantized(tmp_path)
    projector = tmp_path / "projector.gguf"
    projector.write_bytes(b"projector")
    said = said_by(managed=True, cache_type_k="q8_0", cache_type_v="q4_0", n_vocab=None)
    seen = observe(said, weights=path, files={"projector": projector})
    model = composed(model_config(seen, "mine"), tmp_path)
    assert (model.cache_type_k, model.cache_type_v) == ("q8_0", "q4_0")
    assert model.files["projector"].bytes == len(b"projector")
    assert model.files["projector"].path == str(projector)
    report = reconcile(model, seen)
    assert report.verdict is ClaimStatus.CONFIRMED
    assert report.fields["files.projector.sha256"].status is ClaimStatus.CONFIRMED


def test_parts_become_one_option(tmp_path: Path) -> None:
    parts = gguf_bytes.split(tmp_path, 3)
    seen = observe({}, weights=parts[0])
    model = composed(model_config(seen, "mine"), tmp_path)
    assert model.alias == "big"
    assert find_weights(model) == parts[0]
    assert reconcile(model, seen).verdict is ClaimStatus.CONFIRMED


def test_what_is_only_guessed_is_not_declared(tmp_path: Path) -> None:
    weights = gguf_bytes.quantized(tmp_path, ftype=None)
    seen = observe(said_by(ftype="(guessed) Q2_K - Medium", n_vocab=None), weights=weights)
    model = loaded(model_config(seen, "mine"))
    assert (model.quantization.ftype, model.quantization.label) == (None, None)
    assert model.quantization.tensor_types == {"Q2_K": 2, "F32": 1}


def test_a_context_or_cache_that_cannot_be_claimed_is_left_out() -> None:
    said = said_by(managed=True, n_ctx=32, cache_type_k="new")
    model = loaded(model_config(observe(said), "mine"))
    assert (model.context, model.cache_type_k) == (None, None)


def test_it_says_what_it_is(tmp_path: Path) -> None:
    text = model_config(observe({}, weights=gguf_bytes.quantized(tmp_path)), "mine")
    assert text.startswith("# A Model\n# What was observed, as a claim that is checked")
    assert all(len(line) <= 100 for line in text.splitlines() if "path" not in line)


@pytest.mark.parametrize(
    "alias",
    [
        "${oc.env:HOME}",
        r"\${x}",
        r"a\\${x}\b",
        "${",
        "$x",
        'quoted "name"',
        "a: b # c",
        "new\nline",
        "null",
        "1e5",
        "ünïcödé 🙂",
        "\x85",
        "a\x85b",
        "\x00\x7f\x85\u2028\ufeff",
        r"C:\models\x",
    ],
)
def test_an_awkward_name_is_kept_as_it_is(alias: str, tmp_path: Path) -> None:
    seen = observe(said_by(model=alias, model_alias=None, model_path=None))
    assert composed(model_config(seen, "mine"), tmp_path).alias == alias


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter("???".__ne__))
def test_any_name_is_kept_as_it_is(alias: str) -> None:
    seen = Observed({"alias": (says(alias, Source.PROVIDER),)})
    assert loaded(model_config(seen, "mine")).alias == alias
