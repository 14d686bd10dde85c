"""The process in which a learner of another library runs, row by row.

It imports NumPy and the learner's own library, and nothing else of this one that is slow to import.
"""
