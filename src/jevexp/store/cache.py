"""The user's cache folder: downloaded task files, assembled weights, hashes of files."""

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """`$JEVEXP_CACHE`, in which `~` is the home folder, else the platform's cache folder."""
    if chosen := os.environ.get("JEVEXP_CACHE"):
        return Path(chosen).expanduser()
    return platformdirs.user_cache_path("jevexp")
