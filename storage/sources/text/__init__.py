"""Sources of LIBSVM, VW, CSV and space-separated text.

Files are split into blocks of lines. A block is parsed by a fast parser where possible, and line by
line otherwise.
"""
