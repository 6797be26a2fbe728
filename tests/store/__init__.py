"""Tests: The run directory and what is in it."""
