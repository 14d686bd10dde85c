"""What arrives at a worker: Dask pickles the functions and arguments of a task in memory. Files are
never read that way.
"""

import pickle
from typing import TypeVar

T = TypeVar("T")


def as_on_a_worker(sent: T) -> T:
    """The object as another process gets it, or a user who keeps models by pickle."""
    # What was pickled a moment before, in memory: no file is read so.
    return pickle.loads(pickle.dumps(sent))
