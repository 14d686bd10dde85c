"""Launching a nightly run from the command line."""

from dataclasses import replace
from typing import Any

from flows.nightly.night import Night
from flows.runtime.prefect_server import PrefectServer, configure_prefect
from flows.sweep.file import read_sweep
from flows.sweep.request import SweepRequest
from koco_stream.io.paths import store_path
from storage.store import check_store


def launch_nightly(request: SweepRequest, accepting: bool) -> dict[str, Any]:
    """Run the sweep anew through the nightly flow, and compare it; the summary. What can be wrong
    is found before anything starts.
    """
    configure_prefect()
    sweep = read_sweep(request.sweep_file)
    check_store(request.store)
    request.start_of_cluster(0)
    given = replace(request, store=str(store_path(request.store)))
    server = PrefectServer()
    server.start("--no-services", "--no-ui")
    from flows.nightly.flow import nightly_flow, run_night  # seconds
    from flows.sweep.flow import flow_of

    server.wait()
    night = Night(sweep, given, accepting)
    words = (given.sweep_file, given.store, given.cluster, given.workers, given.certificates)
    flow = flow_of(nightly_flow, lambda: run_night(night))
    ended = flow(*words, given.insecure, accepting, return_state=True).result(
        raise_on_failure=False
    )
    if isinstance(ended, BaseException):
        raise ended
    return ended
