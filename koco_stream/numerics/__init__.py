"""Arithmetic in a fixed order: the compiler's door, linear algebra, elementary functions, random
numbers.
"""
