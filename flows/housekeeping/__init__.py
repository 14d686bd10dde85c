"""Keeping house: which sweeps a store has, and removing what is not needed any more."""
