"""What any flow needs while it runs: what is said on stderr, locks, signals, Dask and Prefect."""
