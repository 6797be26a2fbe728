"""Compares finished runs: metrics, statistics, verdicts, gates, plots and pages."""
