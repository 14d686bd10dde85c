"""Launching a sweep from the command line: check everything first, then start what is slow side by
side.
"""

import time
from dataclasses import replace
from typing import Any

from flows.runtime.console import say
from flows.runtime.engine import Start
from flows.runtime.prefect_server import configure_prefect, shield_prefect_server
from flows.sweep.checks import checked, next_missing, sizes_of_all
from flows.sweep.request import SweepRequest
from flows.sweep.steps import PLAIN, Work, run_sweep
from koco_stream.engine.warm_up import needed
from koco_stream.io.paths import store_path


def launch(request: SweepRequest) -> dict[str, Any]:
    """Run the sweep through its Prefect flow; without it if the store has all its runs. The
    cluster, the compiler and Prefect's server start side by side.
    """
    configure_prefect()
    begun = time.monotonic()
    sweep, found, runs, missing = checked(request.sweep_file, request.store, request.retry_failed)
    if sweep.halving:
        missing = next_missing(sweep, found, runs, request.store, request.retry_failed)
    manifests = [manifest for manifest in found.values() if manifest]
    chosen = None
    if missing or request.cluster != "local":
        # a name is checked in any case; who computes nothing does not wait for Dask
        from flows.sweep.planning import mapped_bytes

        chosen = request.start_of_cluster(mapped_bytes(manifests))
    work = Work(replace(request, store=str(store_path(request.store))), sweep)
    checking = time.monotonic() - begun
    if not missing:  # Prefect takes seconds to start, and there is nothing for its pages to show
        summary = run_sweep(work, PLAIN)
        summary["seconds"] = {"check": round(checking, 2), **summary["seconds"]}
        return summary
    say("starting Prefect and the workers")
    if chosen:
        value_types = {run.stream.dataset_hash: "float64" for run in missing} | {
            m.dataset_hash: m.value_type for m in manifests
        }
        kinds = needed(missing, value_types, sizes_of_all(sweep, found))
        work.start = Start(chosen, kinds, loads=request.cluster == "local")
    # the steps expand the sweep themselves, and let its runs go: many take much memory
    runs, missing = [], []
    try:
        begun = time.monotonic()
        summary = through_prefect(work)
        phases = summary["seconds"]
        own = sum(took for phase, took in phases.items() if phase != "scans")
        summary["seconds"] = {
            "check": round(checking, 2),
            "Prefect": round(time.monotonic() - begun - own, 2),
            **phases,
        }
        return summary
    finally:
        if work.start is not None:
            work.start.close()


def through_prefect(work: Work) -> dict[str, Any]:
    """Run the sweep as Prefect's flow; its summary."""
    # imports prefect: seconds, while the cluster starts
    from flows.sweep.flow import TASKS, flow_of, sweep_flow

    shield_prefect_server()
    return flow_of(sweep_flow, lambda: run_sweep(work, TASKS))(**vars(work.request))
