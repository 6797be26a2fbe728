"""Values that go through Hydra's grammar arrive as they are."""

from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from jevexp.cli.compose import compose_directory, quoted
from tests.support.compose import compose

_PIECES = st.lists(
    st.sampled_from(["\\", "'", '"', "${oc.env:HOME}", "${", "$", "{", "}", "a", " ", ",", "="])
)


@given(_PIECES.map("".join))
@settings(deadline=None)
@example("\\")
@example("a\\\\")
@example("\\'${oc.env:HOME}\\")
def test_a_quoted_value_is_read_back_as_it_is(value: str) -> None:
    read = OverridesParser.create().parse_override(f"text={quoted(value)}").value()
    assert OmegaConf.create({"text": read}).text == value


def test_what_a_run_of_somebody_else_names_is_not_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JEVEXP_TEST_KEY", "secret")
    theirs = compose().model_copy(update={"outputs": "there/${oc.env:JEVEXP_TEST_KEY}"})
    directory = compose_directory(theirs, [])
    assert directory.parents[1] == Path("there/${oc.env:JEVEXP_TEST_KEY}")


@pytest.mark.parametrize("text", ["\\" * 1_000_000, "'" * 1_000_000, "${" * 1_000_000])
def test_quoting_takes_as_long_as_the_text(text: str) -> None:
    # Quadratic, it would be minutes.
    assert quoted(text).startswith("'")
