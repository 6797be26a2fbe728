"""Hostile input by the thousand: no traceback, no hang, no file outside, no code."""
