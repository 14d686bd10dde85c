"""Learners of other libraries as learners of a sweep, each run in a process of its own."""
