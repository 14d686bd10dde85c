"""What a sweep is asked for, and the sweep files that come with koco-stream."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from textwrap import shorten
from typing import Any


@dataclass(frozen=True)
class SweepRequest:
    """What to run, on which store, and where; with 0 `workers`, this process computes."""

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
        """How to start the cluster; None without one. Its workers map copies of `mapped_bytes`."""
        from cluster.site import check_where

        check_where(self.cluster)
        from cluster.clusters import cluster_named  # slow: it imports Dask

        return cluster_named(
            self.cluster, self.workers, mapped_bytes, self.certificates, self.insecure
        )


def packaged() -> dict[str, Path]:
    files = (Path(__file__).parent.parent / "sweeps").glob("*.toml")
    return {file.stem: file for file in sorted(files)}


def description(file: Path) -> str:
    lines = takewhile(lambda line: line.startswith("#"), file.read_text("utf-8").splitlines())
    comment = " ".join(line.removeprefix("#").strip() for line in lines)
    return shorten(comment.partition(". ")[0].removesuffix("."), 110, placeholder=" …")
