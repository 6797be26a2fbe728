"""The pinned harness: how it is found, refused, and run."""
