"""Tests: Scoring, ledger, runner and summary."""
