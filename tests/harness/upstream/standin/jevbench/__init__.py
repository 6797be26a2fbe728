"""Stands in for the pinned harness in tests: the same names, written anew, scored by our code."""
