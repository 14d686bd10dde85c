"""A Dask cluster on this machine: single-threaded worker processes on the loopback interface."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import dask
from distributed import Client, LocalCluster

from cluster.machine import worker_bytes
from cluster.settings import ONE_THREAD, QUIET, REPORTING, SETTINGS
from koco_stream.io.cache import private_folder

STARTS = 3
AGAIN_WITHIN = 10.0  # seconds until a worker that has died is there again


@contextmanager
def local_cluster(workers: int, mapped_bytes: int = 0) -> Iterator[Client]:
    """Start a cluster on this machine, give a client of it, and close it at the end.

    Parameters
    ----------
    workers : int
        Number of worker processes, of one thread each.
    mapped_bytes : int
        Size of the mapped copies of datasets. Dask counts mapped pages as a worker's memory,
        although all workers share them and the system can drop them. They are therefore allowed
        on top of a worker's memory limit.
    """
    settings = {**SETTINGS, "temporary-directory": str(private_folder("dask"))}
    with (
        environment_kept(),
        dask.config.set(settings),
        started(workers, worker_bytes(workers) + mapped_bytes) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        try:
            yield client
        finally:
            # Dask fails to close a worker that it is just starting again
            with suppress(TimeoutError):
                client.wait_for_workers(workers, AGAIN_WITHIN)


@contextmanager
def environment_kept() -> Iterator[None]:
    """Restore this process's environment variables at the end.

    Dask sets the variables meant for its workers in this process too, and leaves them there.
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
    """Start a cluster with `workers` workers, each with a memory limit of `limit` bytes.

    A worker that dies while it starts makes the start fail; it is tried up to `starts` times.
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
            preload=[REPORTING],
        )
    except RuntimeError:
        if starts == 1:
            raise
    return started(workers, limit, starts - 1)
