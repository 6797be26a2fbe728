"""What Hydra's own node may hold: directories and launchers, and nothing that names code to run.

A configuration may come from somebody else. Of jevexp's fields only `backend.factory` names code;
Hydra's callbacks, logging factories and package search paths would run or import some too.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from jevexp.errors import InputError

_LOGGING = ("hydra_logging", "job_logging")
_MADE = ("handlers", "formatters", "filters", "loggers", "()", "class")


def check_search_path(overrides: Iterable[str]) -> None:
    """Refuse search paths inside packages, which Hydra would import, before anything is composed.

    Raises:
        InputError: an override asks for one.
    """
    for override in overrides:
        if "searchpath" in override and "pkg:" in override:
            raise InputError(
                "hydra.searchpath: pkg:// imports a package; give a folder with --config-dir"
            )


def check_hydra_node(composed: DictConfig) -> None:
    """Refuse what would run code.

    Raises:
        InputError: naming the field.
    """
    node: Any = composed.hydra
    if node.callbacks:
        raise InputError("hydra.callbacks: would run code that a configuration names; remove it")
    for name in _LOGGING:
        logging = OmegaConf.to_container(node[name], resolve=False)
        # Each of these may be made by a factory that the configuration names.
        if isinstance(logging, Mapping) and any(map(logging.get, _MADE)):
            raise InputError(f"hydra.{name}: jevexp keeps a log of its own; remove it")
    check_search_path(f"searchpath {path}" for path in node.searchpath or ())
