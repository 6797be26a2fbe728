"""Asks each task once by the benchmark's protocol, scores the answers, sums them up."""
