"""Where cohorts run: executors and Dask clusters. Knows nothing of storage."""
