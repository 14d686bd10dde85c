"""Document collections as sources: folders and archives in which each document becomes one row."""
