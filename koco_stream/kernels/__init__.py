"""Kernels, and the data structures to evaluate them on many points."""
