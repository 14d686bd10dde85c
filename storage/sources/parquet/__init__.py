"""Parquet files as sources: prepared rows, and tables with one column a feature."""
