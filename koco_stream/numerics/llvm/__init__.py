"""Hand-written instructions, each beside the literal loop that specifies it."""
