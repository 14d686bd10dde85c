"""Scores of runs: their means, when two are equal, which beat `Constant`, and statistics."""
