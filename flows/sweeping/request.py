"""The request to run a sweep, which commands and schedules pass to its steps."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SweepRequest:
    """Request to run a sweep: its file, its store, and where runs are computed.

    Parameters
    ----------
    sweep_file : str
        Path of the sweep file.
    store : str
        Path or URL of the store.
    workers : int
        Processes of the local cluster; with 0, runs are computed in this process.
    cluster : str
        `local`, a scheduler's address, or a site.
    retry_failed : bool
        Whether failed runs are repeated.
    certificates : str or None
        Folder of certificates, for `tls://` addresses and sites.
    insecure : bool
        Whether an address that other machines can reach may be used without certificates.
    """

    sweep_file: str
    store: str
    workers: int = 0
    cluster: str = "local"
    retry_failed: bool = False
    certificates: str | None = None
    insecure: bool = False

    def start_of_cluster(
        self, mapped_bytes: int
    ) -> Callable[[], AbstractContextManager[Any]] | None:
        """How to start the cluster, from `cluster.clusters.cluster_named`; None without a cluster.

        `mapped_bytes` is the size of the datasets' copies that workers map. Raises `WrongInput` as
        `cluster_named` does.
        """
        from cluster.site import check_where

        check_where(self.cluster)
        from cluster.clusters import cluster_named  # slow: it imports Dask

        return cluster_named(
            self.cluster, self.workers, mapped_bytes, self.certificates, self.insecure
        )
