"""Tests with real servers, which they start themselves."""
