"""Providers of decisions, each a file or a folder of its own behind one protocol."""
