"""The command line: one file a verb, what they print, and Hydra's composition and sweeps."""
