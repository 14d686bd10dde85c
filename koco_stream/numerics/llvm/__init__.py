"""Hand-written instructions, each beside the loop that specifies it."""
