"""Names that MLflow accepts, made from names that people chose.

MLflow takes letters, digits, `_`, `-`, `.`, space, `:` and `/` in the name of a parameter or
metric, and refuses what would be another path when read as one, such as `a/../b`.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

# MLflow's limit is 250 for a whole name.
MAX_LENGTH = 180


def safe_names(names: Iterable[str]) -> dict[str, str]:
    """A safe name for every name; different names stay different.

    A slash is replaced too: it would put one part of a chart's section into another.
    """
    safe = {name: _safe(name) for name in names}
    taken = Counter(safe.values())
    return {
        name: made if taken[made] == 1 or made == name else f"{made}_{_digest(name)}"
        for name, made in safe.items()
    }


def _safe(name: str) -> str:
    made = re.sub(r"[^\w.\- :]", "_", name)[:MAX_LENGTH]
    return made if made.strip(". ") else "_" * max(len(made), 1)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
