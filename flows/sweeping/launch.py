"""Launching a sweep from the command line: all checks first, then slow starts in parallel."""

import time
from dataclasses import replace
from typing import Any

from flows.runtime.console import say
from flows.runtime.engine import Start
from flows.runtime.prefect_server import PrefectServer, configure_prefect
from flows.sweeping.checks import CheckedSweep
from flows.sweeping.request import SweepRequest
from flows.sweeping.steps import run_sweep
from koco_stream.engine.warm_up import needed
from koco_stream.io.paths import store_path


def launch(request: SweepRequest) -> dict[str, Any]:
    """Run a sweep through its Prefect flow, or without Prefect if the store has all its runs.

    The cluster, the compiler and Prefect's server start in parallel. Returns the summary of
    `flows.sweeping.flow.sweep_flow`. Raises `WrongInput` as `CheckedSweep` does, and for a cluster
    that cannot be used.
    """
    configure_prefect()
    begun = time.monotonic()
    checked = CheckedSweep(request)
    missing = checked.missing
    if checked.sweep.halving:
        missing = next(filter(None, map(checked.not_in_store, checked.stages([]))), [])
    # the name of a cluster is always checked; `local` needs no check, which would import Dask
    checks = missing or request.cluster != "local"
    cluster = request.start_of_cluster(checked.mapped_bytes) if checks else None
    checked.request = replace(request, store=str(store_path(request.store)))
    phases = {"check": round(time.monotonic() - begun, 2)}
    # without runs to compute, starting Prefect would only cost seconds
    if not missing:
        summary = run_sweep(checked)
        return {**summary, "seconds": {**phases, **summary["seconds"]}}
    say("starting Prefect and the workers")
    start = cluster and Start(
        cluster,
        needed(missing, checked.value_types, checked.sizes),
        loads=request.cluster == "local",
    )
    # free the lists, which can be large; the steps make them again
    missing = checked.missing = []
    try:
        begun = time.monotonic()
        summary = through_prefect(checked, start)
    finally:
        if start is not None:
            start.close()
    own = sum(took for phase, took in summary["seconds"].items() if phase != "scans")
    phases["Prefect"] = round(time.monotonic() - begun - own, 2)
    return {**summary, "seconds": {**phases, **summary["seconds"]}}


def through_prefect(checked: CheckedSweep, start: Start | None) -> dict[str, Any]:
    """Run a checked sweep as a Prefect flow; returns its summary."""
    server = PrefectServer()
    server.start("--no-services", "--no-ui")
    # importing Prefect takes seconds; the server starts meanwhile
    from flows.sweeping.flow import TASKS, flow_of, sweep_flow

    server.wait()
    return flow_of(sweep_flow, lambda: run_sweep(checked, TASKS, start))(**vars(checked.request))
