"""Scores of runs: their means, when two are equal, and statistics."""
