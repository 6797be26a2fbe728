"""Text from elsewhere as Markdown that shows it and does nothing else."""

import re

from jevexp.untrusted.console import printable

# Everything that Markdown or HTML gives a meaning, also at a line's beginning. Without
# its colon an address becomes no link by itself.
_MEANS = re.compile(r"([\\`*_{}\[\]()<>#+!|~$&^=:@-])")


_ALIKE = {
    ord("`"): "\N{MODIFIER LETTER GRAVE ACCENT}",
    ord("|"): "\N{FULLWIDTH VERTICAL LINE}",
    ord("<"): "\N{FULLWIDTH LESS-THAN SIGN}",
}


def plain(text: str) -> str:
    """`text` on one line, every character of it shown as it is."""
    return _MEANS.sub(lambda found: f"&#{ord(found[0])};", printable(text))


def code(text: str) -> str:
    """`text` in a code span, from which no character gets out; for tables as well."""
    # A code span has no escapes: what could end it, or a table's cell, gives way to its double.
    return f"`{printable(text).translate(_ALIKE)}`"
