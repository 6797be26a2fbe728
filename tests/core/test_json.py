"""What counts as JSON here, and what becomes of values that do not."""

import json
import math
import re
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jevexp.core.json import MAX_DEPTH, dumps, loads, representable, shown

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda parts: st.lists(parts) | st.dictionaries(st.text(), parts),
    max_leaves=20,
)


def nested(depth: int) -> Any:
    value: Any = "core"
    for _ in range(depth):
        value = [value]
    return value


@given(JSON)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert loads(dumps(value)) == value
    assert loads(dumps(value).encode()) == value


def test_text_stays_readable_and_keys_can_be_sorted() -> None:
    assert dumps({"b": "größe ☃", "a": 1.0}) == '{"b": "größe ☃", "a": 1.0}'
    assert dumps({"b": 1, "a": 2}, sort_keys=True) == '{"a": 2, "b": 1}'


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, [math.nan], {"a": {"b": math.nan}}]
)
def test_nan_and_infinities_are_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps(value)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", 1j])
def test_objects_are_not_written(value: Any) -> None:
    with pytest.raises(TypeError):
        dumps(value)


def test_a_bottomless_value_is_not_written() -> None:
    with pytest.raises(RecursionError):
        dumps(nested(100_000))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", '{"a": [NaN]}'])
def test_the_names_of_no_numbers_are_not_read(text: str) -> None:
    with pytest.raises(ValueError, match="is not a JSON number"):
        loads(text)


@pytest.mark.parametrize("text", ["1e999", "-1e999", "[1.5e400]", "1" + "0" * 400 + ".0"])
def test_numbers_beyond_all_floats_are_not_read(text: str) -> None:
    with pytest.raises(ValueError, match="too large for a number"):
        loads(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("9" * 300, 10**300 - 1), (f"-{2**1023 - 1}", 1 - 2**1023), ("-0", 0)],
)
def test_whole_numbers_are_read_as_far_as_a_float_reaches(text: str, number: int) -> None:
    assert loads(text) == number
    assert math.isfinite(float(loads(text)))


@pytest.mark.parametrize("text", [str(2**1023), f"[-{2**1023}]", "1" * 400, "1" * 1_000_000])
def test_whole_numbers_beyond_all_floats_are_not_read(text: str) -> None:
    with pytest.raises(ValueError, match="too large for a number") as caught:
        loads(text)
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("9" * 15 + "e9999", "9" * 15 + "e9999"),
        ("9" * 16 + "e9999", "9" * 16 + "e999… (21 characters)"),
        ("7" * 309, "7" * 20 + "… (309 characters)"),
    ],
)
def test_of_a_long_number_its_beginning_is_shown(text: str, shown: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(shown)} is too large for a number$"):
        loads(text)


@pytest.mark.parametrize(
    ("text", "key"), [('{"a": 1, "a": 1}', "a"), ('[{"b": 0, "a\\n": 1, "a\\n": 2}]', "a\\n")]
)
def test_a_key_occurs_once_in_an_object(text: str, key: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"the key '{key}' occurs twice")):
        loads(text)
    assert isinstance(loads(text, lenient=True), list | dict)


@pytest.mark.parametrize("text", [r'"\ud83d"', r'{"a": "\uDE00x"}', r'{"\udfff": 1}', '"\ud83d"'])
def test_half_of_a_surrogate_pair_is_no_character(text: str) -> None:
    with pytest.raises(ValueError, match="is half of a surrogate pair, not a character"):
        loads(text)
    assert loads(text, lenient=True)


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert loads(r'"\ud83d\ude00 \ufffd"') == "😀 \ufffd"


@pytest.mark.parametrize(("depth", "fits"), [(256, True), (257, False), (900, False)])
def test_only_so_many_levels_are_read(depth: int, fits: bool) -> None:
    text = "[" * depth + "]" * depth
    if fits:
        assert isinstance(loads(text), list)
    else:
        with pytest.raises(ValueError, match="nested too deep"):
            loads(text)


def test_brackets_in_a_text_are_no_levels() -> None:
    assert loads(f'"{"[" * 1000}"') == "[" * 1000


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_a_hundred_thousand_brackets_are_refused_and_end_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="nested too deep"):
        loads(text)


@pytest.mark.parametrize(
    "data",
    [
        b'"\xff"',
        b'"\xc3"',
        '"text"'.encode("utf-16"),
        '"text"'.encode("utf-32"),
        b'"\xed\xa0\x80"',
        b'\xef\xbb\xbf"byte order mark"',
    ],
)
def test_only_plain_utf_8_is_read(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"utf-8|BOM|Expecting value"):
        loads(data)


@pytest.mark.parametrize("text", ["", " ", "{", '{"a" 1}', "[1,]", "'a'", "1 2", "\x00"])
def test_what_is_no_document_is_not_read(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        loads(text)


# representable


@given(JSON)
def test_json_is_left_as_it_is(value: Any) -> None:
    assert representable(value) == value


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, categories=None), max_size=5)
    | st.binary(max_size=5)
    | st.complex_numbers()
    | st.sampled_from([object(), Ellipsis, int])
    # More digits than Python prints.
    | st.sampled_from([1, -1]).map(lambda sign: sign << 20_000),
    lambda parts: (
        st.lists(parts, max_size=4)
        | st.tuples(parts, parts)
        | st.dictionaries(
            st.text(st.characters(codec=None, categories=None), max_size=3)
            | st.integers()
            | st.floats()
            | st.none(),
            parts,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(ANYTHING)
def test_anything_can_be_written_and_read_once_it_is_representable(value: Any) -> None:
    kept = representable(value)
    assert loads(dumps(kept).encode()) == kept
    assert representable(kept) == kept


class Rude:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("sk-secret")


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (True, True),
        (b"x", "b'x'"),
        ((1, (2,)), [1, [2]]),
        (MappingProxyType({"a": OrderedDict(b=1)}), {"a": {"b": 1}}),
        (
            {1: "a", 2.5: "b", None: "c", (1, 2): "d"},
            {"1": "a", "2.5": "b", "None": "c", "(1, 2)": "d"},
        ),
        ("\ud800", "'\\ud800'"),
        (10**300, 10**300),
        (10**400, f"1{'0' * 400}"),
        (Rude(), "<Rude: ValueError>"),
    ],
)
def test_what_json_has_no_word_for_becomes_text(value: Any, kept: Any) -> None:
    assert representable(value) == kept


def test_what_lies_too_deep_becomes_text() -> None:
    kept = representable(nested(MAX_DEPTH + 1))
    for _ in range(MAX_DEPTH):
        (kept,) = kept
    assert kept == "['core']"
    assert isinstance(dumps(representable(nested(100_000))), str)


def test_a_list_that_holds_itself_comes_to_an_end() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert isinstance(dumps(representable(endless)), str)


def test_shown_is_repr_where_there_is_one() -> None:
    assert shown([1, "a"]) == "[1, 'a']"
    assert shown(10**5000) == "<int: ValueError>"


@pytest.mark.parametrize("value", ["[]", "1"])
def test_so_many_values_are_not_made(value: str) -> None:
    # Sixty million bytes of them would be three thousand million in memory.
    most = f"[{','.join([value] * 2_000_000)}]"
    with pytest.raises(ValueError, match="more than 2000000 values"):
        loads(f"[{most},1]")
    assert len(loads(most)) == 2_000_000
