"""Nightly runs at planned times: `koco serve`."""
