"""Data sources: the source interface, and readers for text, Parquet files and documents."""
