"""The subcommands of koco, a group of them a file. Each imports what it needs when it runs, so that
`--help` answers at once.
"""
