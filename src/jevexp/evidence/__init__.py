"""The output directory: what a run leaves behind, and how it is read again."""

from jevexp.evidence.directory import RunDirectory
from jevexp.evidence.journal import Ending, Journal
from jevexp.evidence.manifest import Manifest, RunStatus

__all__ = ["Ending", "Journal", "Manifest", "RunDirectory", "RunStatus"]
