"""The papers' figures and tables, drawn from a sweep's results."""
