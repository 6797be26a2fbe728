"""A run's directory: manifest, records, checksums, and how finished runs are found."""

from jevexp.store.directory import RunDirectory
from jevexp.store.manifest import Manifest, RunStatus

__all__ = ["Manifest", "RunDirectory", "RunStatus"]
