"""Cores and memory of this machine, in a module that does not import Dask."""

import os


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def worker_bytes(workers: int) -> int:
    """Memory limit in bytes of each of `workers` workers on this machine.

    Together they get four fifths of the available memory.
    """
    import psutil  # slow

    return int(0.8 * psutil.virtual_memory().available / max(workers, 1))
