"""Tests of the providers on OpenAI-compatible servers; real ones are in tests/live."""
