"""Sections of a sweep's report: tables and plots that can be made for any sweep."""
