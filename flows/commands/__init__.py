"""The commands of koco, several in a module.

Their implementations are imported when a command runs, so that `--help` answers at once.
"""
