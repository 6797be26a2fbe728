"""The command line: one verb a file, thin. Hydra stops here and in the settings."""
