"""The commands of koco.

Their implementations are imported when a command runs, so that `--help` answers at once.
"""
