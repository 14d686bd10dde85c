"""A Dask cluster on this machine: one process a core, one thread each, on the loopback interface
only.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import dask
import psutil
from distributed import Client, LocalCluster

from koco_stream.io.cache import private_folder

ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
}

QUIET = {
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"
}  # what a task raises reaches whoever waits for it, and is said there, once

STARTS = 3


def worker_bytes(workers: int) -> int:
    """The memory limit of each of `workers` workers: four fifths of what the machine has free,
    divided among them.
    """
    return int(0.8 * psutil.virtual_memory().available / max(workers, 1))


SETTINGS = {
    "distributed.nanny.pre-spawn-environ": {**ONE_THREAD, **QUIET},
    "distributed.worker.use-file-locking": False,
    "distributed.logging.distributed": "error",
    # what has cost two workers their lives is not given to a third
    "distributed.scheduler.allowed-failures": 1,
    # nothing waits on a worker: its death then says something of one cohort only
    "distributed.scheduler.worker-saturation": 1.0,
    # Dask looks at itself: a hundred times a second at what runs, fifty times whether its loop
    # turns, twice at all that psutil knows. On the cores that scan this costs several per cent of
    # their time.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.target": False,  # there is nothing to spill: states are not Dask's
    "distributed.worker.memory.spill": False,
    # a paused worker would wait for ever for memory that its cohort holds
    "distributed.worker.memory.pause": False,
    # So long after a worker was lost Dask looks whether it is back, and gives its place up for good
    # if it is just being started once more.
    "distributed.deploy.lost-worker-timeout": "87600h",
}


@contextmanager
def local_cluster(workers: int, mapped_bytes: int = 0) -> Iterator[Client]:
    """A client of a cluster with `workers` worker processes, closed at the end.

    Dask counts what a worker has mapped as its memory; `mapped_bytes` of copies of datasets, which
    all workers share and the system takes back when it must, are therefore allowed on top of a
    worker's limit.
    """
    with (
        environment_kept(),
        dask.config.set({**SETTINGS, "temporary-directory": str(private_folder("dask"))}),
    ):
        with started(workers, worker_bytes(workers) + mapped_bytes) as cluster:
            client = Client(cluster, set_as_default=False)
            try:
                yield client
            finally:
                client.close()


@contextmanager
def environment_kept() -> Iterator[None]:
    """Dask puts what its workers' environment is to have into this process's own, and leaves it
    there: afterwards it is as it was.
    """
    names = (*ONE_THREAD, *QUIET)
    before = {name: os.environ[name] for name in names if name in os.environ}
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)


def started(workers: int, limit: int) -> LocalCluster:
    """A cluster of so many workers with this limit of memory. A worker that is lost while it starts
    fails the start of the cluster, which is then tried again, a few times.
    """
    for attempt in range(STARTS):
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
            if attempt == STARTS - 1:
                raise
    raise AssertionError
