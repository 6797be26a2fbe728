"""Several requests under way at once, for servers with that many slots."""

from jevexp.harness.concurrent.runner import ConcurrentRunner

__all__ = ["ConcurrentRunner"]
