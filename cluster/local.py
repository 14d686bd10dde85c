"""A Dask cluster on this machine: one process a core, one thread each, on the loopback interface
only.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster

from cluster.machine import worker_bytes
from cluster.settings import ONE_THREAD, QUIET, SETTINGS
from koco_stream.io.cache import private_folder

STARTS = 3


@contextmanager
def local_cluster(workers: int, mapped_bytes: int = 0) -> Iterator[Client]:
    """A client of a cluster on this machine, which is closed at the end.

    Parameters
    ----------
    workers
        How many worker processes there are.
    mapped_bytes
        The size of the copies of datasets. Dask counts what a worker has mapped as its memory. All
        workers share these copies, and the system takes them back when it must. They are therefore
        allowed on top of a worker's limit.
    """
    settings = {**SETTINGS, "temporary-directory": str(private_folder("dask"))}
    with (
        environment_kept(),
        dask.config.set(settings),
        started(workers, worker_bytes(workers) + mapped_bytes) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@contextmanager
def environment_kept() -> Iterator[None]:
    """Keep this process's environment as it is.

    Dask puts what its workers' environment is to have into this process's own, and leaves it there.
    """
    names = (*ONE_THREAD, *QUIET)
    before = {name: os.environ[name] for name in names if name in os.environ}
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)


def started(workers: int, limit: int, starts: int = STARTS) -> LocalCluster:
    """A cluster of so many workers with this limit of memory.

    A worker that is lost while it starts fails the start of the cluster, which is then tried again:
    `starts` times in all.
    """
    try:
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit=limit,
            silence_logs=40,
        )
    except RuntimeError:
        if starts == 1:
            raise
    return started(workers, limit, starts - 1)
