"""A configuration as flat parameters, which MLflow compares side by side."""

from collections.abc import Iterator
from typing import Any

from jevexp.core.json import dumps
from jevexp.tracking.names import safe_names
from jevexp.untrusted.addresses import redacted

# Longer values are unreadable in a table, and MLflow cuts them at 6000 without a word; the whole
# configuration is an artifact.
MAX_LENGTH = 500


def params(resolved: dict[str, Any]) -> dict[str, str]:
    """The short leaves by dotted name; a list is one leaf, as JSON. Nulls are left out."""
    leaves = dict(_leaves(resolved, ""))
    names = safe_names(leaves)
    return {names[name]: text for name, text in leaves.items() if len(text) <= MAX_LENGTH}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{path}.{key}" if path else str(key))
    elif value is not None:
        # A configuration of ours holds no password; a stranger's, or an old one, may.
        yield path, redacted(value if isinstance(value, str) else dumps(value))
