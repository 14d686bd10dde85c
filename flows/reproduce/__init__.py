"""koco reproduce: the papers' figures and tables, from the data to the claims."""
