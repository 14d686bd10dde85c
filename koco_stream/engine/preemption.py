"""Preemption: a worker that is told to stop soon saves its current cohort and stops.

A signal handler sets the event `requested`; a cohort checks it after each block of rows.
"""

import threading

requested = threading.Event()


class Preempted(Exception):
    """The worker was told to stop.

    Its cohort's states are saved, and another worker can resume from them.
    """
