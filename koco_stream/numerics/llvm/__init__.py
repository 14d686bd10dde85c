"""Hand-written instructions, each beside the literal loop that specifies it, and the plain loops of
the same tables.
"""
