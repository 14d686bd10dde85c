"""Launching a nightly run from the command line."""

from dataclasses import replace
from typing import Any

from flows.nightly.night import Night
from flows.runtime.prefect_server import PrefectServer, configure_prefect
from flows.sweeping.file import read_sweep
from flows.sweeping.request import SweepRequest
from koco_stream.io.paths import store_path
from storage.store import check_store


def launch_nightly(request: SweepRequest, accepting: bool) -> dict[str, Any]:
    """Start a nightly run through its Prefect flow and wait for it.

    Wrong input is found before anything starts.

    Parameters
    ----------
    request : SweepRequest
        The sweep to recompute, its store, and the cluster.
    accepting : bool
        Whether to accept the new numbers and speeds, whatever the comparison finds.

    Returns
    -------
    dict
        Summary of the run: its result, the changes, counts of runs, and the path of the report.
    """
    configure_prefect()
    sweep = read_sweep(request.sweep_file)
    check_store(request.store)
    request.start_of_cluster(0)
    given = replace(request, store=str(store_path(request.store)))
    server = PrefectServer()
    server.start_for_one_flow()
    # these imports take seconds, while the server starts
    from flows.nightly.flow import nightly_flow, run_night
    from flows.sweeping.flow import flow_of

    server.wait()
    night = Night(sweep, given, accepting)
    words = (given.sweep_file, given.store, given.cluster, given.workers, given.certificates)
    flow = flow_of(nightly_flow, lambda: run_night(night))
    ended = flow(*words, given.insecure, accepting, return_state=True).result(
        raise_on_failure=False
    )
    server.wait_until_written(night.tasks)
    if isinstance(ended, BaseException):
        raise ended
    return ended
