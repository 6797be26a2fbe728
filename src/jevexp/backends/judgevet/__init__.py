"""Any judgevet provider: its own HTTP adapter, a typevet session, or one from a factory."""

from jevexp.backends.judgevet.backend import Judgevet

__all__ = ["Judgevet"]
