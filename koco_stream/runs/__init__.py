"""Runs and cohorts: identity, result schema, cost, and the plan of a sweep."""
