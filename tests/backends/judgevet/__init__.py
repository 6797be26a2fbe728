"""Tests: The bridge to judgevet's providers."""
