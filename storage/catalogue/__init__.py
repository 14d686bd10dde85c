"""Catalogue of the papers' datasets: their files, and how to fetch, unpack and verify them."""
