"""Runs and cohorts: their identity, their result schema, their cost, and the plan of a sweep."""
