"""The report of a sweep: its sections, the papers' figures, and the pages that they are put on."""
