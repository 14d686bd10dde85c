"""Storage: preparation of Parquet datasets, and tables of results. Independent of clusters."""
