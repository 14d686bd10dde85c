"""Preparation of datasets from the catalogue and from files into a store."""
