"""Preemption: a worker that is told to stop saves its cohort and stops.

A signal handler sets `requested`, which a cohort checks after each block.
"""

import threading

requested = threading.Event()


class Preempted(Exception):
    """The worker was told to stop; another can resume its cohort from the saved states."""
