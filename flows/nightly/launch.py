"""Launching a nightly run from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flows.sweep.file import read_sweep
from koco_stream.io.paths import store_name
from storage.store import check_store


def launch_nightly(
    spec: Path,
    store: str,
    workers: int,
    cluster: str,
    accepting: bool,
    certificates: str | None = None,
    insecure: bool = False,
) -> dict[str, Any]:
    """Run the sweep anew through the nightly flow, and compare it; the summary. What can be wrong
    is found before anything starts.
    """
    from cluster.clusters import cluster_named
    from flows.runtime.prefect_server import configure_prefect, shield_prefect_server

    configure_prefect()
    read_sweep(spec)
    check_store(store)
    cluster_named(cluster, workers, 0, certificates, insecure)
    from flows.nightly.flow import nightly_flow

    shield_prefect_server()
    words = (str(spec), store_name(store), cluster, workers, certificates, insecure, accepting)
    ended = nightly_flow(*words, return_state=True).result(raise_on_failure=False)
    if isinstance(ended, BaseException):
        raise ended
    summary: dict[str, Any] = ended
    return summary
