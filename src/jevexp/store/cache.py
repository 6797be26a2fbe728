"""The user's own folders: a cache that may be deleted, and a state that is remembered."""

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Of downloaded task files, assembled weights and hashes of files.

    `$JEVEXP_CACHE`, in which `~` is the home folder, else the platform's cache folder.
    """
    if chosen := os.environ.get("JEVEXP_CACHE"):
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("jevexp")


def state_folder() -> Path:
    """Of what only this user can know, such as which tracking databases are theirs.

    `$JEVEXP_STATE`, in which `~` is the home folder, else the platform's folder for states.
    """
    if chosen := os.environ.get("JEVEXP_STATE"):
        return Path(chosen).expanduser()
    return platformdirs.user_state_path("jevexp")
