"""What arrives at a worker: Dask pickles the functions and arguments of a task in memory. Files are never read that way."""

import pickle
from typing import TypeVar

T = TypeVar("T")


def as_on_a_worker(sent: T) -> T:
    """The object as another process of the cluster gets it."""
    return pickle.loads(pickle.dumps(sent))
