"""What is to be swept, and where: handed from the command or a schedule to the steps."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SweepRequest:
    """A sweep file, the store, and where the runs are computed.

    Parameters
    ----------
    sweep_file
        The path of the sweep file.
    store
        The store's name.
    workers
        Processes of the local cluster; with 0, runs are computed in this process.
    block_rows
        Rows read at a time; None for the usual number. Changes no result.
    cluster
        `local`, a scheduler's address, or a site.
    retry_failed
        Whether runs that failed are run again.
    certificates
        The folder of certificates, for an address that asks for them and for sites.
    insecure
        Whether an address may be used that others can reach without certificates.
    """

    sweep_file: str
    store: str
    workers: int = 0
    block_rows: int | None = None
    cluster: str = "local"
    retry_failed: bool = False
    certificates: str | None = None
    insecure: bool = False

    def start_of_cluster(
        self, mapped_bytes: int
    ) -> Callable[[], AbstractContextManager[Any]] | None:
        """What starts the cluster, whose workers map so many bytes of datasets; None without one.
        Raises `WrongInput` as `cluster_named` does.
        """
        from cluster.clusters import cluster_named  # imports Dask

        return cluster_named(
            self.cluster, self.workers, mapped_bytes, self.certificates, self.insecure
        )
