"""Launching a sweep: all checks first, then slow starts in parallel."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from flows.runtime.console import say
from flows.sweeping.checks import CheckedSweep, checked_sweep
from flows.sweeping.file import Sweep
from flows.sweeping.request import SweepRequest

if TYPE_CHECKING:
    from prefect.states import State

    from flows.runtime.engine import Start

# How long Prefect may let a sweep wait: seconds for an answer, and requests made again.
PATIENCE = {"PREFECT_API_REQUEST_TIMEOUT": "5", "PREFECT_CLIENT_MAX_RETRIES": "0"}


def launch(
    request: SweepRequest, prefect: bool | None = None, sweep: Sweep | None = None
) -> dict[str, Any]:
    """Run a sweep, whose workers and compilers start in parallel.

    If something is computed, it is a flow run on Prefect's server: that of PREFECT_API_URL or of
    `koco serve`; if there is none, and with `prefect` true, one that runs as long as the sweep.
    With `prefect` false it is none. `sweep` is given if its file was read before. Returns the
    summary of `flows.sweeping.flow.sweep_flow`. Raises `WrongInput` as `read_checked` does, for a
    cluster that cannot be used, and if another process runs the sweep.
    """
    begun = time.monotonic()
    checked = checked_sweep(request, sweep)
    # imported after what refuses a sweep, because it takes a second
    from flows.runtime.engine import Start
    from flows.sweeping.status import refuse_running
    from flows.sweeping.steps import run_sweep
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
        if missing:
            prefect = _has_server() if prefect is None else prefect
            if cluster:
                say("starting the workers")
                kinds = needed(missing, checked.value_types, checked.sizes)
                start = Start(cluster, kinds, loads=request.cluster == "local")
                if start.compilers:
                    say("compiling the learners, once for this version; this can take a minute")
                stack.callback(start.close)
        in_prefect = bool(missing and prefect)
        del missing  # frees memory
        checking = time.monotonic() - begun
        run = run_in_prefect if in_prefect else run_sweep
        summary = run(checked, start=start)
    phases = {"checks": round(checking, 2), **summary["seconds"]}
    spent = sum(took for phase, took in phases.items() if phase != "scans")
    phases["Prefect" if in_prefect else "closing"] = round(
        max(time.monotonic() - begun - spent, 0.0), 2
    )
    return {**summary, "seconds": phases}


def _has_server() -> bool:
    """Whether Prefect has a server for this user, and is installed."""
    from flows.runtime.prefect_server import ADDRESS, served

    return bool(os.environ.get(ADDRESS) or served()) and find_spec("prefect") is not None


def run_in_prefect(checked: CheckedSweep, start: Start | None = None) -> dict[str, Any]:
    """Run a checked sweep as a flow run, and return its summary.

    The outcome is that of the work: whatever Prefect does, a line says so, and no more. If Prefect
    does not begin the flow run, the sweep runs without it.
    """
    from flows.runtime.prefect_server import PrefectServer, configure_prefect
    from flows.sweeping.steps import run_sweep

    configure_prefect()
    os.environ.update({**PATIENCE, **os.environ})
    outcome: list[dict[str, Any] | BaseException] = []
    tasks: list[State[Any]] = []
    try:
        server = PrefectServer()
        server.start_for_one_flow()
        if server.process is not None:
            say("starting Prefect's server, which takes about ten seconds")
        # its import takes seconds, in which the server starts
        from prefect.runtime import flow_run
        from prefect.utilities.urls import url_for

        from flows.sweeping.flow import flow_of, run_in_flow, sweep_flow

        def work() -> None:
            if server.process is None:
                say(f"  this sweep in Prefect: {url_for('flow-run', flow_run.id)}")
            try:
                outcome.append(run_in_flow(checked, start, tasks))
            except BaseException as error:
                outcome.append(error)
                raise

        server.wait()
        named = flow_of(sweep_flow, work).with_options(flow_run_name=checked.sweep.name)
        named(**vars(checked.request))
        server.wait_until_written(tasks)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # Prefect may answer anything
        if error not in outcome:
            what = "has not recorded all of" if outcome else "is not there; it does not record"
            why = f"{type(error).__name__}: {error}".partition("\n")[0]
            say(f"Prefect {what} this sweep: {why}")
    summary = outcome[0] if outcome else run_sweep(checked, start=start)
    if isinstance(summary, BaseException):
        raise summary
    return summary
