"""Parquet files as sources: prepared rows, or tables with one column per feature."""
