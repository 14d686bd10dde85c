"""Launching a sweep: all checks first, then slow starts in parallel."""

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from flows.runtime.console import say
from flows.runtime.engine import Start
from flows.sweeping.checks import checked_sweep
from flows.sweeping.file import Sweep
from flows.sweeping.flow_record import FlowRecord, recorded
from flows.sweeping.progress import refuse_running
from flows.sweeping.request import SweepRequest
from flows.sweeping.steps import run_sweep
from koco_stream.engine.warm_up import needed
from koco_stream.io.paths import store_path


def launch(
    request: SweepRequest, prefect: bool = True, sweep: Sweep | None = None
) -> dict[str, Any]:
    """Run a sweep; Prefect, if it is installed, records what is computed.

    The cluster, the compilers and Prefect start in parallel, and the sweep does not wait for
    Prefect. With `prefect` false, or if the store has all runs, nothing is recorded. `sweep` is
    given if its file was read before. Returns the summary of `flows.sweeping.flow.sweep_flow`.
    Raises `WrongInput` as `CheckedSweep` does, for a cluster that cannot be used, and if another
    process runs the sweep.
    """
    begun = time.monotonic()
    checked = checked_sweep(request, sweep)
    refuse_running(request.store, checked.sweep.name)
    missing = checked.missing
    if checked.sweep.staged:
        missing = next(filter(None, map(checked.not_in_store, checked.stages([]))), [])
    if checked.sweep.spaces:
        say(f"the search learns from results: about {checked.expected_runs:,} runs, in batches")
    # the name of a cluster is always checked; `local` needs no check, which would import Dask
    checks = missing or request.cluster != "local"
    cluster = request.start_of_cluster(checked.mapped_bytes) if checks else None
    checked.request = replace(request, store=str(store_path(request.store)))
    with ExitStack() as stack:
        start, record = None, None
        if missing:
            if recorded(prefect):
                record = stack.enter_context(FlowRecord(checked.request, checked.sweep.name))
            if cluster:
                say("starting the workers")
                kinds = needed(missing, checked.value_types, checked.sizes)
                start = Start(cluster, kinds, loads=request.cluster == "local")
                if start.compilers:
                    say("compiling the learners, once for this version; this can take a minute")
                stack.callback(start.close)
        # free the lists, which can be large; the steps make them again
        missing = checked.missing = []
        checking = time.monotonic() - begun
        if record is None:
            summary = run_sweep(checked, start=start)
        else:
            summary = run_sweep(checked, record.steps, start, record.progress)
            record.completed(summary)
    phases = {"checks": round(checking, 2), **summary["seconds"]}
    spent = sum(took for phase, took in phases.items() if phase != "scans")
    phases["closing"] = round(max(time.monotonic() - begun - spent, 0.0), 2)
    return {**summary, "seconds": phases}
