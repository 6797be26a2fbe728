"""The System One provider against scripted servers; real ones are in tests/live."""
