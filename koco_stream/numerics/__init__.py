"""Arithmetic in a fixed order: compiler, linear algebra, elementary functions, random numbers."""
