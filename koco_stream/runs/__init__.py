"""Runs and cohorts, their identity, their tables, what they cost, and the plan."""
