"""Tests: one run, planned, asked, resumed."""
