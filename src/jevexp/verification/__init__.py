"""Proves a finished run again, offline, from nothing but its own files."""

from jevexp.verification.check import Check, Failure, Report, Result, State
from jevexp.verification.run import verify_run

__all__ = ["Check", "Failure", "Report", "Result", "State", "verify_run"]
