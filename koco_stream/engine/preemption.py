"""Preemption: a worker that was told to stop soon saves the cohort it is at, and stops.

Whoever catches the signal sets `requested`; a cohort asks for it after each block of rows.
"""

import threading

requested = threading.Event()


class Preempted(Exception):
    """The worker was told to stop. What it had done of the cohort is saved; another goes on from
    there.
    """
