"""Preparation of datasets: source rows are read, transformed and written as shards."""
