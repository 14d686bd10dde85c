"""Streams: prepared datasets, read in a given order."""
