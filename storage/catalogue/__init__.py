"""The datasets of the papers: which files they are, and how these are fetched, unpacked and
checked.
"""
