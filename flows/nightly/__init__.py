"""Nightly runs: all runs of a sweep are recomputed and compared with the accepted ones."""
