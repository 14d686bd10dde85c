"""The worker's part of a sweep: running cohorts of runs, checkpoints, and result files."""
