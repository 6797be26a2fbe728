"""The command line: one file a verb, what they print, and Hydra's composition and sweeps."""

from pathlib import Path


def conf_dir() -> Path:
    """The configuration tree: inside an installed package, or at the top of a checkout."""
    package = Path(__file__).parents[1]
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parents[1] / "conf"
