"""Any service that speaks the System One wire: one request a decision, read strictly."""

from jevexp.backends.systemone.backend import SystemOne

__all__ = ["SystemOne"]
