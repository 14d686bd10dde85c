"""Execution of cohorts: serially or on Dask clusters. Imports no storage package."""
