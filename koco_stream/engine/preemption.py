"""Preemption: a worker that is told to stop saves its cohort."""

import threading

requested = threading.Event()


class Preempted(Exception):
    """The worker was told to stop, and has saved its cohort."""
