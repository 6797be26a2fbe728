"""Plain data and rules: no input or output, no framework."""
