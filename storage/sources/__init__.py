"""What preparing reads from: the protocol of a source, and the readers of text, Parquet and
documents.
"""
