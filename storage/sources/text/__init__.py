"""LIBSVM, VW, CSV and space-separated text: cut into blocks of lines, parsed fast where it is
plain, else line by line.
"""
