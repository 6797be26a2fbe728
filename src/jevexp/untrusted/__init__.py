"""What may come from a stranger: files read within bounds, text printed without control codes."""
