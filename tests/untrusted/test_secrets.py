"""A key is found in what a stranger says, however it is spelled, and in honest text it is not."""

import base64
import html
import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jevexp.backends.bodies import parsed, unreadable
from jevexp.untrusted.secrets import Secrets

KEY = "sk-Zq8/vN+3tW_x1Lm7RbK2cD9eF4gH6jP0"
SECRETS = Secrets([KEY, None, ""])


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


SPELLINGS = {
    "plain": KEY,
    "in a sentence": f"no such key: {KEY}, go away",
    "upper case": KEY.upper(),
    "escaped": escaped(KEY),
    "one letter escaped": KEY.replace("q", "\\u0071"),
    "escaped twice": escaped(KEY).replace("\\", "\\\\"),
    "hexadecimal escapes": "".join(f"\\x{ord(letter):02X}" for letter in KEY),
    "octal escapes": "".join(f"\\{ord(letter):03o}" for letter in KEY),
    "escaped slash": KEY.replace("/", "\\/"),
    "percent": quote(KEY, safe=""),
    "percent, all": "".join(f"%{ord(letter):02x}" for letter in KEY),
    "percent twice": quote(quote(KEY, safe=""), safe=""),
    "entities": "".join(f"&#x{ord(letter):x};" for letter in KEY),
    "an entity": html.escape(KEY).replace("+", "&plus;"),
    "hexadecimal": KEY.encode().hex(),
    "Base64": base64.b64encode(KEY.encode()).decode(),
    "Base64 of a login": base64.b64encode(f"me:{KEY}".encode()).decode(),
    "Base64 within more": base64.b64encode(b"x" * 7 + KEY.encode() + b"y" * 5).decode(),
    "Base64 for addresses": base64.urlsafe_b64encode(b"u:" + KEY.encode()).decode(),
    "spaced": " ".join(KEY),
    "in lines": "\n".join(KEY[start : start + 5] for start in range(0, len(KEY), 5)),
    "with what is not seen": "\u200b".join(KEY),
    "with dashes": "-".join(KEY),
    "hexadecimal, spaced": " ".join(f"{byte:02x}" for byte in KEY.encode()),
    "Base64 in lines": base64.encodebytes(KEY.encode() * 4).decode(),
    "with zero bytes": "\0".join(KEY),
    "wide": "".join(chr(ord(letter) + 0xFEE0) for letter in KEY),
    "but for a letter": KEY[:10] + KEY[11:],
    "with another letter": KEY[:20] + "?" + KEY[21:],
    "first half": KEY[:18],
    "second half": KEY[17:],
    "masked in the middle": f"{KEY[:16]}********{KEY[-4:]}",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_a_key_is_found_in_every_spelling(spelling: str) -> None:
    assert SECRETS.occur_in(spelling)
    for value in (spelling, [spelling], {"a": {"b": [1, spelling]}}, {spelling: 1}):
        kept = SECRETS.without(value)
        assert "[key]" in json.dumps(kept)
        assert not any(KEY[start : start + 8] in json.dumps(kept) for start in range(28))
        assert not SECRETS.occur_in(json.dumps(kept, ensure_ascii=False))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, len(KEY) - 1), st.text(max_size=3), st.text(max_size=20), st.text())
def test_a_letter_more_or_less_does_not_hide_it(
    at: int, instead: str, before: str, after: str
) -> None:
    assert SECRETS.occur_in(before + KEY[:at] + instead + KEY[at + 1 :] + after)


def test_a_key_spread_over_fields_is_replaced_in_each() -> None:
    body = {"first": KEY[:18], "second": KEY[18:], "rest": "fine"}
    assert SECRETS.without(body) == {"first": "[key]", "second": "[key]", "rest": "fine"}


def test_of_a_sentence_only_the_key_is_replaced() -> None:
    assert SECRETS.without(f"no such key: {KEY}!") == "no such key: [key]!"


def test_names_that_become_one_stay_apart() -> None:
    assert SECRETS.without({KEY: 1, KEY.upper(): 2, "[key]": 3}) == {
        "[key]": 1,
        "[key]'": 2,
        "[key]''": 3,
    }


def test_a_key_of_digits_is_found_as_a_number() -> None:
    assert Secrets(["1234567890123456"]).without({"a": 1234567890123456}) == {"a": "[key]"}


@pytest.mark.parametrize(
    "value",
    [
        {"error": {"message": "Incorrect API key provided: sk-*****6jP0.", "type": "auth"}},
        {"model": "gemma-3", "id": "chatcmpl-123", "created": 1_700_000_000, "x": None, "y": 0.5},
        ["100 %", "a&b", "back\\slash", "%zz", "\\u12", "&#x110000000;", "größe 日本"],
    ],
)
def test_honest_answers_are_left_alone(value: Any) -> None:
    assert SECRETS.without(value) == value


def test_what_every_server_says_is_no_key() -> None:
    assert Secrets(["none"]).without({"a": "none of them"}) == {"a": "none of them"}
    assert not Secrets([None, ""]).in_use
    assert Secrets(["none"]).in_use


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_any_text_is_looked_through(text: str) -> None:
    assert Secrets([None]).without(text) == text
    assert isinstance(SECRETS.without(text), str)


# Bodies


@pytest.mark.parametrize(
    "raw",
    [
        KEY[:10].encode() + b"\\u" + KEY[11:].encode(),
        b"{" + KEY.encode(),
        KEY.encode("utf-16"),
        f'{{"a": "{escaped(KEY)}"'.encode(),
        base64.b64encode(KEY.encode()),
        b"7\r\n" + KEY.encode() + b"\r\n0\r\n",
        b"\x1f\x8b\x08" + KEY.encode(),
        b"",
    ],
)
def test_of_what_cannot_be_parsed_nothing_is_shown_where_a_key_is_in_use(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parsed(raw, SECRETS)
    shown = unreadable(raw, f"text/html; charset={KEY}", SECRETS)
    assert shown["bytes"] == len(raw)
    assert shown["content_type"] == "text/html"
    assert len(shown["sha256"]) == 64
    assert set(shown) == {"withheld", "bytes", "content_type", "sha256"}
    assert not SECRETS.occur_in(json.dumps(shown))


def test_a_type_that_nobody_knows_is_not_repeated() -> None:
    assert unreadable(b"", f"application/{KEY}", SECRETS)["content_type"] is None
    assert unreadable(b"", None, SECRETS)["content_type"] is None


def test_without_a_key_the_beginning_is_shown() -> None:
    assert unreadable(b"<h1>502</h1>", "text/html", Secrets([])) == "<h1>502</h1>"
    assert len(unreadable(b"x" * 100_000, None, Secrets([]))) == 2000


@pytest.mark.parametrize("body", [list(KEY), {"x": [[letter] for letter in KEY]}])
def test_a_key_spread_over_a_document_letter_by_letter_withholds_it(body: Any) -> None:
    with pytest.raises(ValueError, match="spread"):
        parsed(json.dumps({"a": body}).encode(), SECRETS)


def test_many_numbers_are_no_key_of_digits() -> None:
    secrets = Secrets(["1234567890123456"])
    body = {"a": [12.345678, 90.123456]}
    assert parsed(json.dumps(body).encode(), secrets) == (body, False)


@pytest.mark.parametrize("spelling", [KEY.replace("/", "\\/"), escaped(KEY)])
def test_in_json_the_decoded_text_counts(spelling: str) -> None:
    assert parsed(f'{{"a": "{spelling}", "b": 1}}'.encode(), SECRETS) == (
        {"a": "[key]", "b": 1},
        True,
    )
    assert parsed(b'{"a": "b"}', SECRETS) == ({"a": "b"}, False)
