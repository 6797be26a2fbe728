"""Files of weights: what their header says, and their hash, kept until they change."""
