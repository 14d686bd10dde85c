"""Kernels, and what is kept to evaluate them on many points at once."""
