"""A file type has one name, however it is spelled."""

import re

import pytest
from gguf import LlamaFileType
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from jevexp.core.ftype import Ftype, claimed_ftype, ftype_names, ftype_of
from jevexp.errors import InputError
from jevexp.settings import Quantization
from tests.support.compose import compose

KNOWN = [ftype for ftype in LlamaFileType if ftype is not LlamaFileType.GUESSED]
known = st.sampled_from(KNOWN)


def short(ftype: LlamaFileType) -> str:
    return re.sub("^(MOSTLY|ALL)_", "", ftype.name).upper()


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        (15, "Q4_K_M"),
        (0, "F32"),
        ("Q4_K - Medium", "Q4_K_M"),
        ("Q4_K - Small", "Q4_K_S"),
        ("Q3_K - Large", "Q3_K_L"),
        ("Q2_K - Medium", "Q2_K"),
        ("Q2_K - Small", "Q2_K_S"),
        ("Q6_K", "Q6_K"),
        ("all F32", "F32"),
        ("mostly Q4_0", "Q4_0"),
        ("IQ4_NL - 4.5 bpw", "IQ4_NL"),
        ("IQ3_S - 3.4375 bpw", "IQ3_S"),
        ("IQ3_S mix - 3.66 bpw", "IQ3_M"),
        ("TQ1_0 - 1.69 bpw ternary", "TQ1_0"),
        ("MXFP4 MoE", "MXFP4_MOE"),
        ("MOSTLY_Q4_K_M", "Q4_K_M"),
        ("q4_k_m", "Q4_K_M"),
        (" Q8_0\n", "Q8_0"),
    ],
)
def test_a_spelling_has_one_name(spelling: str | int, name: str) -> None:
    found = ftype_of(spelling)
    assert found is not None
    assert (found.name, found.guessed) == (name, False)


@pytest.mark.parametrize(
    "spelling",
    [1024 + 15, "(guessed) Q4_K - Medium", "Q4_K - Medium (guessed)", "guessed Q4_K_M"],
)
def test_a_guess_is_told_from_a_header(spelling: str | int) -> None:
    assert ftype_of(spelling) == Ftype("Q4_K_M", 15, guessed=True)


@given(known)
def test_every_type_of_the_library_is_known(ftype: LlamaFileType) -> None:
    expected = Ftype(short(ftype), int(ftype))
    for spelling in (int(ftype), ftype.name, short(ftype), short(ftype).lower()):
        assert ftype_of(spelling) == expected
    assert claimed_ftype(short(ftype)) == short(ftype)


@given(known, st.sampled_from(["(guessed) {}", "{} (guessed)", "  {} ", "mostly {}", "all {}"]))
def test_what_surrounds_a_name_does_not_change_it(ftype: LlamaFileType, form: str) -> None:
    found = ftype_of(form.format(short(ftype)))
    assert found is not None
    assert (found.name, found.guessed) == (short(ftype), "guessed" in form)


@given(st.text() | st.integers())
def test_anything_else_is_no_type_and_no_error(spelling: str | int) -> None:
    found = ftype_of(spelling)
    assert found is None or found.name in ftype_names()


@pytest.mark.parametrize("spelling", ["", "Q4_K", "q4", "unknown, may not work", 99, -1, 1 << 80])
def test_what_is_no_type_is_none(spelling: str | int) -> None:
    assert ftype_of(spelling) is None


def test_a_claim_is_kept_by_name() -> None:
    for spelling in (15, "Q4_K - Medium", "q4_k_m", "MOSTLY_Q4_K_M"):
        assert Quantization.model_validate({"ftype": spelling}).ftype == "Q4_K_M"
    assert Quantization.model_validate({"ftype": None}).ftype is None


@pytest.mark.parametrize("claim", [True, 1.5, ["Q4_K_M"], {"Q4_K_M": 1}])
def test_a_claim_is_a_name_or_a_number(claim: object) -> None:
    with pytest.raises(ValidationError):
        Quantization.model_validate({"ftype": claim})


@pytest.mark.parametrize(
    ("claim", "line"),
    [
        (
            "Q4_KM",
            "model.quantization.ftype: no such file type: 'Q4_KM'; did you mean Q4_K_M?",
        ),
        ("fit24gib", "model.quantization.ftype: no such file type: 'fit24gib'; there are F32, "),
    ],
)
def test_a_mistaken_claim_is_told_in_one_line(claim: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        compose("dataset=demo", f"model.quantization.ftype={claim}")
    assert str(caught.value).startswith(line)
