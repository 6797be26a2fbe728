"""The templates, set up so that nothing in them can be forgotten."""

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jevexp.analysis.page.numbers import FILTERS, Place
from jevexp.analysis.text import visible, visible_lines

if TYPE_CHECKING:
    from jinja2 import Environment

_PACKAGE = "jevexp.analysis.page"


@cache
def make_environment() -> "Environment":
    """Every value is escaped, every hidden character is shown, every missing name is an error.

    There is one for all pages: reading the templates takes longer than filling them in.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= FILTERS
    environment.filters["lines"] = shown_lines
    return environment


def style_sheet() -> tuple[str, str]:
    """The style sheet, and the source expression that allows it in a content security policy."""
    text = resources.files(_PACKAGE).joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return text, f"'sha256-{digest}'"


def shown_lines(text: str) -> Any:
    """Text of several lines, whose ends and tabs stay what they are."""
    from markupsafe import escape

    return escape(visible_lines(text))


def _shown(value: Any) -> Any:
    """What an expression writes: markup as it is, everything else visible.

    Raises:
        TypeError: nothing, or a number that no filter gave its place and format.
    """
    from markupsafe import Markup

    if isinstance(value, Markup):
        return value
    if isinstance(value, Place):
        value = value.raw
    if value is None or isinstance(value, float):
        raise TypeError(f"{value!r} on the page without a filter")
    return visible(str(value))
