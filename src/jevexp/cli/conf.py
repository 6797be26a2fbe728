"""Where the configuration tree is."""

from pathlib import Path

import jevexp


def conf_dir() -> Path:
    """The tree inside an installed package, or at the top of a checkout."""
    package = Path(jevexp.__file__).parent
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parents[1] / "conf"
