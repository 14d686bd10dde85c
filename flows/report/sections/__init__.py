"""The sections of a sweep's report: what is computed and drawn for any sweep, from its runs and
curves.
"""
