"""Tests: What every provider has to do."""
