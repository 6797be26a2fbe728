"""What finished runs say when they are read side by side."""
