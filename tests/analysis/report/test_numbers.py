"""Numbers and their places."""

import pytest
from markupsafe import escape

from jevexp.analysis.report.numbers import FILTERS, UNKNOWN, JsonPointer
from jevexp.analysis.report.page import make_environment, shown_lines


def test_a_part_knows_where_it_stands() -> None:
    document = JsonPointer({"runs": [{"a/b~c": 0.25}]})

    (run,) = document["runs"]

    assert run["a/b~c"].pointer == "/runs/0/a~1b~0c"
    assert FILTERS["decimal"](run["a/b~c"]) == (
        '<data value="0.25" data-at="/runs/0/a~1b~0c">0.250</data>'
    )


@pytest.mark.parametrize(
    ("filter_", "value", "text"),
    [
        ("decimal", 1 / 3, "0.333"),
        ("signed", -0.0625, "\u22120.062"),
        ("signed", 0.5, "+0.500"),
        ("whole", 12345, "12\u202f345"),
        ("probability", 0.0004, "<\u202f0.001"),
        ("seconds", 1.2345, "1.23\u202fs"),
        ("seconds", 0.000128, "0.000128\u202fs"),
        ("seconds", 1234.5, "1234\u202fs"),
        ("ratio", 2.594, "2.59\u202f×"),
        ("megabytes", 253113024, "253\u202fMB"),
        ("dollars", 0.0123456, "$0.01235"),
        ("plain", 0.02, "0.02"),
    ],
)
def test_what_is_written(filter_: str, value: float, text: str) -> None:
    said = FILTERS[filter_](JsonPointer(value, "/x"))
    assert said.partition(">")[2].removesuffix("</data>") == escape(text)
    assert f'value="{value!r}"' in said


def test_a_p_value_says_how_it_compares() -> None:
    assert (
        FILTERS["probability"](JsonPointer(0.04, "/p"))
        == '=\u202f<data value="0.04" data-at="/p">0.040</data>'
    )
    assert FILTERS["probability"](JsonPointer(0.0, "/p")).endswith(">&lt;\u202f0.001</data>")


@pytest.mark.parametrize("filter_", ["decimal", "signed", "whole", "seconds", "megabytes"])
def test_what_is_unknown_is_no_number(filter_: str) -> None:
    assert FILTERS[filter_](JsonPointer(None, "/x")) == UNKNOWN


@pytest.mark.parametrize("value", [0.5, None])
def test_a_number_cannot_be_written_without_a_format(value: float | None) -> None:
    template = make_environment().from_string("{{ number }}")

    with pytest.raises(TypeError, match="without a filter"):
        template.render(number=JsonPointer(value, "/x"))


def test_line_ends_of_a_text_stay_what_they_are() -> None:
    assert shown_lines("a\n\tb\r<") == "a\n\tb\\r&lt;"
