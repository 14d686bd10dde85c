"""What is to be swept, and where: handed from the command or a schedule to the steps."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SweepRequest:
    """A sweep file, the store, and where the runs are computed.

    `cluster` is `local`, with so many `workers` processes (0 for none), a scheduler's address, with
    the folder of its `certificates`, or a site; `insecure`: others may reach it. With
    `retry_failed`, runs that failed are run again.
    """

    sweep_file: str
    store: str
    workers: int
    block_rows: int | None = None
    cluster: str = "local"
    retry_failed: bool = False
    certificates: str | None = None
    insecure: bool = False

    def start_of_cluster(self, n_bytes: int) -> Callable[[], AbstractContextManager[Any]] | None:
        """What starts the cluster, whose workers map so many bytes of datasets; None without one.
        Raises `WrongInput` as `cluster_named` does.
        """
        from cluster.clusters import cluster_named  # imports Dask

        return cluster_named(self.cluster, self.workers, n_bytes, self.certificates, self.insecure)
