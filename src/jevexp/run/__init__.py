"""One run from top to bottom: planned, identified, asked, written down, or resumed."""
