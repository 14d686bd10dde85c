"""Data sources of the preparation pipeline: the source interface, and readers for text files,
Parquet files and document collections.
"""
