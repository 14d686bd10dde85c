"""Preparation of datasets: source rows are read, transformed, written as shards and described by a
manifest.
"""
