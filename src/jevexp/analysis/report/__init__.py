"""The page of a comparison or of one run: what it shows, its templates, its files."""
