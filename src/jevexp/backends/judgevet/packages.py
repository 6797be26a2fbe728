"""Whether the bridge's packages can be used here."""

import sys
from importlib.metadata import version
from importlib.util import find_spec

from jevexp.errors import InputError

PACKAGES = ("judgevet", "typevet")
_OLDEST = (3, 12)


def require_packages() -> None:
    """Check Python's version and that the bridge is installed.

    Raises:
        InputError: one of them is missing; says which.
    """
    here = tuple(sys.version_info[:3])
    if here < _OLDEST:
        raise InputError(
            "backend.kind: judgevet needs Python 3.12 or newer, this is "
            f"{'.'.join(map(str, here))}; install jevexp[bridge] there, or choose another backend"
        )
    for package in PACKAGES:
        if find_spec(package) is None:
            raise InputError(
                f"backend.kind: the package {package} is not installed; "
                "pip install 'jevexp[bridge]'"
            )


def versions() -> dict[str, str]:
    """The installed version of each of the bridge's packages."""
    return {package: version(package) for package in PACKAGES}
