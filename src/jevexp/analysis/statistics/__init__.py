"""Statistics as pure functions of numbers: no files, no runs, no printing."""
