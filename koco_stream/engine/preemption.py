"""Leaving early: a worker that was told to go (preempted, or at the end of its time) saves the
cohort it is at, and stops.

The process is asked by `ask`, wherever the signal was caught; a cohort looks at `asked` after each
block of rows.
"""

import threading

_asked = threading.Event()


class Preempted(Exception):
    """The worker was told to leave. What it had done of the cohort is saved; another goes on from
    there.
    """


def ask() -> None:
    """Have this process take up no more work, and stop what it is at after the current block of
    rows.
    """
    _asked.set()


def asked() -> bool:
    """Whether this process was told to leave."""
    return _asked.is_set()
