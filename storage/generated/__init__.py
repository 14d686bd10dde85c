"""Synthetic datasets, generated from a seed."""
