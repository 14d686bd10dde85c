"""The cores and the memory of this machine: apart, so that asking does not import Dask."""

import os

import psutil


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def worker_bytes(workers: int) -> int:
    """The memory limit of each of `workers` workers.

    Four fifths of what the machine has free are divided among them.
    """
    return int(0.8 * psutil.virtual_memory().available / max(workers, 1))
