"""A worker's part of a sweep: cohorts, checkpoints and result files."""
