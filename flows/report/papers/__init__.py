"""Figures and tables of the papers, drawn from a sweep's results: a file an experiment."""
