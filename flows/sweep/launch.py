"""Launching a sweep from the command line: check everything first, then start the slow parts
together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows.runtime.console import say
from flows.sweep.checks import checked, next_missing, sizes_of_all
from flows.sweep.steps import PLAIN, Work, run_sweep
from koco_stream.engine.warm_up import needed
from koco_stream.io.paths import store_name


def launch(
    spec: Path,
    store: str,
    workers: int,
    block_rows: int | None,
    cluster: str,
    retry_failed: bool,
    certificates: str | None = None,
    insecure: bool = False,
) -> dict[str, Any]:
    """Run the sweep through its Prefect flow; without it if the store has all its runs. The
    cluster, the compiler and Prefect's server start side by side.
    """
    from flows.runtime.engine import abandon, begin
    from flows.runtime.prefect_server import configure_prefect

    configure_prefect()
    begun = time.monotonic()
    sweep, found, runs, missing = checked(spec, store, retry_failed)
    if sweep.halving:
        missing = next_missing(sweep, found, runs, store, retry_failed)
    manifests = [manifest for manifest in found.values() if manifest]
    chosen = None
    if (
        missing or cluster != "local"
    ):  # a name is checked in any case; who computes nothing does not wait for Dask
        from cluster.clusters import cluster_named
        from flows.sweep.planning import mapped_bytes

        chosen = cluster_named(cluster, workers, mapped_bytes(manifests), certificates, insecure)
    options = (str(spec), store_name(store), workers, block_rows, cluster, retry_failed)
    checking = time.monotonic() - begun
    if not missing:  # Prefect takes seconds to start, and there is nothing for its pages to show
        summary = run_sweep(Work(*options), PLAIN)
        summary["seconds"] = {"check": round(checking, 2), **summary["seconds"]}
        return summary
    say("starting Prefect and the workers")
    if chosen:
        value_types = {run.stream.dataset_hash: "float64" for run in missing} | {
            m.dataset_hash: m.value_type for m in manifests
        }
        begin(
            chosen,
            needed(missing, value_types, sizes_of_all(sweep, found)),
            loads=cluster == "local",
        )
    runs, missing = (
        [],
        [],
    )  # the flow has its own, and lets them go: of many runs they take as much memory as its report
    try:
        begun = time.monotonic()
        summary = _flow()(*options, certificates, insecure)
        phases = summary["seconds"]
        of_prefect = (
            time.monotonic()
            - begun
            - sum(took for phase, took in phases.items() if phase != "scans")
        )
        summary["seconds"] = {
            "check": round(checking, 2),
            "Prefect": round(of_prefect, 2),
            **phases,
        }
        return summary
    finally:
        abandon()


def _flow() -> Callable[..., dict[str, Any]]:
    from flows.runtime.prefect_server import shield_prefect_server
    from flows.sweep.flow import sweep_flow  # imports prefect: seconds, while the cluster starts

    shield_prefect_server()
    return sweep_flow
