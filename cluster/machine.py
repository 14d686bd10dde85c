"""Cores and memory of this machine, in a module that does not import Dask."""

import os


def cores() -> int:
    return len(os.sched_getaffinity(0))


def worker_bytes(workers: int) -> int:
    """Together the workers get four fifths of the available memory."""
    import psutil  # slow

    return int(0.8 * psutil.virtual_memory().available / max(workers, 1))
