"""Loops in hand-written LLVM instructions, each beside the Python loop that specifies it."""
