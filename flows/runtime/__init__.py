"""Shared by all flows: messages on stderr, locks, signals, and starting Dask and Prefect."""
