"""Arithmetic in a fixed order: the compiler interface, linear algebra, elementary functions, random
numbers.
"""
