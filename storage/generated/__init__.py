"""Synthetic datasets, made from a seed."""
