"""A quantization in a model's name is found where it is one, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.core.ftype import ftype_names, quantizations_in

Q4_K = {"Q4_K_S", "Q4_K_M"}


@pytest.mark.parametrize(
    ("alias", "types"),
    [
        ("gemma-4-31b-kv9-q4km-mm", {"Q4_K_M"}),
        ("gemma-3-270m-q4_k_m", {"Q4_K_M"}),
        ("Model.Q4_K_M.gguf", {"Q4_K_M"}),
        ("model-q4-k-m", {"Q4_K_M"}),
        ("model:q8_0", {"Q8_0"}),
        ("SmolLM2-135M-Instruct.Q4_1", {"Q4_1"}),
        ("iq3_xs", {"IQ3_XS"}),
        ("model-IQ3XXS", {"IQ3_XXS"}),
        ("model-f16", {"F16"}),
        ("model-fp16", {"F16"}),
        ("model-bf16", {"BF16"}),
        ("model-q2_k", {"Q2_K"}),
        ("model-q2_k_s", {"Q2_K_S"}),
        ("model-q6k", {"Q6_K"}),
        ("model-q4_k", Q4_K),
        ("model-Q4K", Q4_K),
        ("gpt-oss-20b-mxfp4", {"MXFP4_MOE"}),
        ("i1-Q4_K_S", {"Q4_K_S"}),
    ],
)
def test_a_named_quantization_is_found(alias: str, types: set[str]) -> None:
    assert quantizations_in(alias) == (frozenset(types),)


@pytest.mark.parametrize(
    "alias",
    [
        "",
        "q4",
        "model-q4",
        "model-4bit",
        "gemma-3-270m",
        "faq4_0",
        "q4_00",
        "q80",
        "release-q4-1.5b",
        "model-q4-0",
        "UD-Q2_K_XL",
        "model-Q6_K_L",
        "model-q4_k_xl",
        "model-kv-q8_0",
        "model-kv_f16",
        "model-mmproj-f16",
        "xf16",
        "f160",
    ],
)
def test_what_may_mean_something_else_is_no_claim(alias: str) -> None:
    assert quantizations_in(alias) == ()


def test_several_are_all_found() -> None:
    both = (frozenset({"Q4_K_M"}), frozenset({"Q8_0"}))
    assert quantizations_in("q4_k_m-output-q8_0") == both


@given(st.sampled_from(ftype_names()), st.sampled_from(["{}", "model-{}", "{}.gguf", "a_{}-b"]))
def test_every_type_is_found_by_its_own_name(name: str, form: str) -> None:
    for spelled in (name, name.lower()):
        assert quantizations_in(form.format(spelled)) == (frozenset({name}),)


@given(st.text())
def test_any_name_can_be_read(alias: str) -> None:
    for types in quantizations_in(alias):
        assert types <= set(ftype_names())
