"""The sweep flow: the sweep file, its plan, its steps, its progress."""
