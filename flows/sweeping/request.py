"""The request to run a sweep, which commands and schedules pass to its steps, and the sweep files
that come with koco-stream.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from textwrap import shorten
from typing import Any


@dataclass(frozen=True)
class SweepRequest:
    """Request to run a sweep: its file or name, its store, and where runs are computed.

    Parameters
    ----------
    sweep_file : str
        Path of the sweep file, or the name of a packaged sweep or of a prepared dataset.
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


def packaged() -> dict[str, Path]:
    """The packaged sweep files, by the name of their sweep."""
    files = (Path(__file__).parent.parent / "sweeps").glob("*.toml")
    return {file.stem: file for file in sorted(files)}


def description(file: Path) -> str:
    """The beginning of the comment at the top of a sweep file."""
    lines = takewhile(lambda line: line.startswith("#"), file.read_text("utf-8").splitlines())
    comment = " ".join(line.removeprefix("#").strip() for line in lines)
    return shorten(comment.partition(". ")[0].removesuffix("."), 110, placeholder=" …")
