"""What preparing reads from: what a source is, and the readers of text, Parquet and
documents.
"""
