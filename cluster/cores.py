"""The cores of this machine: apart, so that asking for them does not import Dask."""

import os


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))
