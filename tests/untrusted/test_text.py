"""Text from strangers loses what would act on a terminal, and nothing else."""

import json
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.untrusted.console import (
    MAX_LINE,
    is_printable,
    printable,
    printable_json,
    printable_line,
    printable_lines,
    shortened,
    visible,
)

ANY = st.text(st.characters(codec=None, categories=None))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),
        ("a\rb\nc", r"a\rb\nc"),
        ("user\u202egpj.exe", r"user\u202egpj.exe"),
        ("\u2066a\u2069\u200f\u061c", r"\u2066a\u2069\u200f\u061c"),
        ("one\u2028two\u2029", r"one\u2028two\u2029"),
        ("\udc80", r"\udc80"),
        ("\U000e0041", r"\U000e0041"),
        ("\x00\x07\x7f", r"\x00\x07\x7f"),
    ],
)
def test_what_would_act_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize("text", ["größe ☃", "日本語", "שלום", "नमस्ते", "👩‍👩‍👧", "a\tb", r"\x1b"])
def test_every_script_stays_as_it_is(text: str) -> None:
    assert printable(text) == text
    assert is_printable(text)


@given(ANY)
def test_no_control_is_left_of_any_text(text: str) -> None:
    shown = printable(text)
    assert is_printable(shown)
    assert shown.encode().decode() == shown
    left = {c for c in shown if unicodedata.category(c) == "Cc"}
    assert left <= {"\t"}
    assert not any(unicodedata.bidirectional(c) in {"LRE", "RLE", "LRO", "RLO"} for c in shown)


def test_a_line_keeps_the_line_ends_after_it_and_no_other() -> None:
    assert printable_line("fault\nerror: all is well\n\n") == "fault\\nerror: all is well\n\n"
    assert printable_line("\n") == "\n"
    assert printable_lines("one\ntwo\r\n") == "one\ntwo\\r\n"


def test_a_line_is_cut_where_nobody_reads_on() -> None:
    shown = printable_line("x" * 1_000_000)
    assert shown == f"{'x' * MAX_LINE}… (1000000 characters)"


@given(st.recursive(ANY | st.none(), lambda parts: st.lists(parts) | st.dictionaries(ANY, parts)))
def test_a_document_says_the_same_without_what_acts(value: object) -> None:
    document = json.dumps(value, ensure_ascii=False, indent=2)
    shown = printable_json(document)
    assert json.loads(shown) == json.loads(document)
    assert all(is_printable(line) for line in shown.split("\n"))


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
def test_what_acts_is_an_escape_on_drawings_and_pages(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(ANY)
def test_any_text_can_be_put_into_xml(text: str) -> None:
    element = ElementTree.Element("text")
    element.text = visible(text)

    assert ElementTree.fromstring(ElementTree.tostring(element)).text or not text


def test_a_long_text_is_cut_to_the_letters_allowed() -> None:
    assert shortened("twelve chars", 12) == "twelve chars"
    assert shortened("twelve chars", 8) == "twelve…"
