"""Streams: prepared datasets, and reading their rows in a given order."""
