"""Parquet datasets in, Arrow result tables out. Knows nothing of clusters."""
