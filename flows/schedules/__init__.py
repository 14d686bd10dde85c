"""Nightly sweeps at planned times: koco serve."""
