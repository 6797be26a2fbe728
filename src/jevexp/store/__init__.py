"""The output directory: what a run leaves behind, and how it is read again."""

from jevexp.store.directory import RunDirectory
from jevexp.store.manifest import Manifest, RunStatus

__all__ = ["Manifest", "RunDirectory", "RunStatus"]
