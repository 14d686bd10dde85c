"""Folders and archives of documents as sources: a row a document."""
