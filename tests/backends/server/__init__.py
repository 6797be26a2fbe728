"""Servers that are started from a command: tests with real processes."""
