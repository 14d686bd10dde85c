"""What a worker does of a sweep: running cohorts of runs, checkpoints, and result files."""
