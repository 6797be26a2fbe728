"""Adapters; the stand-in has none of its own."""
