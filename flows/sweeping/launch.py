"""Launching a sweep: all checks first, then slow starts in parallel."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from flows.runtime.console import say
from flows.sweeping.checks import CheckedSweep, checked_sweep
from flows.sweeping.file import Sweep
from flows.sweeping.request import SweepRequest

if TYPE_CHECKING:
    from flows.runtime.engine import Start


def launch(
    request: SweepRequest, prefect: bool | None = None, sweep: Sweep | None = None
) -> dict[str, Any]:
    """Run a sweep, whose workers and compilers start in parallel.

    If something is computed, it is a flow run where `flows.runtime.recording.recorded` makes one.
    `sweep` is given if its file was read before. Returns the summary of
    `flows.prefect_flows.sweep_flow`. Raises `WrongInput` as `read_checked` does, for a cluster that
    cannot be used, and if another process runs the sweep.
    """
    begun = time.monotonic()
    checked = checked_sweep(request, sweep)
    # imported after what refuses a sweep, because it takes a second
    from flows.runtime.engine import Start
    from flows.runtime.recording import recorded
    from flows.sweeping.status import refuse_running
    from koco_stream.engine.warm_up import needed

    refuse_running(request.store, checked.sweep.name)
    missing = checked.next_to_compute()
    if checked.sweep.spaces:
        say(f"the search learns from results: about {checked.expected_runs:,} runs, in batches")
    # the name of a cluster is always checked; `local` needs no check, which would import Dask
    checks = missing or request.cluster != "local"
    cluster = request.start_of_cluster(checked.mapped_bytes) if checks else None
    with ExitStack() as stack:
        start = None
        if missing and cluster:
            say("starting the workers")
            kinds = needed(missing, checked.value_types, checked.sizes)
            start = Start(cluster, kinds, loads=request.cluster == "local")
            if start.compilers:
                say("compiling the learners, once for this version; this can take a minute")
            stack.callback(start.close)
        prefect = prefect if missing else False
        del missing  # frees memory
        checking = time.monotonic() - begun
        run = partial(run_stages, checked, start)
        given = vars(checked.request)
        summary = recorded("sweep_flow", checked.sweep.name, given, run, prefect)
    phases = {"checks": round(checking, 2), **summary["seconds"]}
    spent = sum(took for phase, took in phases.items() if phase != "scans")
    rest = "Prefect" if "prefect" in sys.modules else "closing"  # its start is most of it
    phases[rest] = round(max(time.monotonic() - begun - spent, 0.0), 2)
    return {**summary, "seconds": phases}


def run_stages(checked: CheckedSweep, start: Start | None = None) -> dict[str, Any]:
    """Run a checked sweep; a flow run gets its progress and results.

    `start` is the cluster, if it is already starting. Returns the summary of `sweep_flow`.
    """
    from flows.runtime.recording import stage, table_artifact
    from flows.sweeping.progress_artifact import ProgressArtifact
    from flows.sweeping.steps import PLAIN, run_sweep
    from flows.views.answer import results_of

    store, name = checked.request.store, checked.sweep.name
    steps = {step: partial(stage, step, function) for step, function in PLAIN.items()}
    summary = run_sweep(checked, steps, start, [ProgressArtifact(name)])
    if summary["computed"]:
        results = partial(results_of, store, name)
        table_artifact(f"results-{name}", results, (), summary["report"], store)
    return summary
