"""Tests: Tasks, records and JSON."""
