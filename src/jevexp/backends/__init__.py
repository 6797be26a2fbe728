"""Providers of decisions, one file each behind one protocol."""
