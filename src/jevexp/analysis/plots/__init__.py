"""The pictures of a comparison: one file a plot, each with the data that it shows."""
