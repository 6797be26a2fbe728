"""Text from strangers on drawings and pages."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.analysis.text import shortened, visible, visible_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Gdańsk, 東京", "plain, Gdańsk, 東京"),
        ("a\x00b\x1b[31m", r"a\x00b\x1b[31m"),
        ("user\u202etxt.exe", r"user\u202etxt.exe"),
        ("\u2066isolated\u2069", r"\u2066isolated\u2069"),
        ("\ud800", r"\ud800"),
        ("\ufffe\uffff", r"\ufffe\uffff"),
        ("a\nb", r"a\nb"),
    ],
)
def test_what_acts_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_line_ends_of_its_own_stay() -> None:
    assert visible_lines("a\n\tb\r") == "a\n\tb\\r"


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_put_into_xml(text: str) -> None:
    element = ElementTree.Element("text")
    element.text = visible_lines(text)

    assert ElementTree.fromstring(ElementTree.tostring(element)).text or not text


def test_a_long_text_is_cut_to_the_letters_allowed() -> None:
    assert shortened("twelve chars", 12) == "twelve chars"
    assert shortened("twelve chars", 8) == "twelve…"
