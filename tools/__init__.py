"""Scripts for development; nothing here is installed."""
