"""Implementation of `koco reproduce`: the papers' figures and tables, from data to claims."""
