"""Launching a nightly run from the command line."""

from dataclasses import replace
from functools import partial
from typing import Any

from flows.nightly.stages import nights_locked, run_night
from flows.runtime.recording import Stage, recorded
from flows.sweeping.file import read_sweep
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest
from koco_stream.io.paths import store_path
from storage.store import check_store


def launch_nightly(request: SweepRequest, prefect: bool | None = None) -> dict[str, Any]:
    """Do a nightly run by hand, as a flow run where `recorded` makes one; returns its summary.

    Wrong input is found before anything starts.
    """
    sweep = read_sweep(request.sweep_file)
    check_store(request.store)
    request.start_of_cluster(0)
    request = replace(request, store=str(store_path(request.store)))

    def work(stage: Stage) -> dict[str, Any]:
        with nights_locked(request.store):
            return run_night(request, sweep, partial(launch, stage=stage), stage)

    def state_of(summary: dict[str, Any]) -> object:
        from flows.nightly.flow import state_of

        return state_of(summary)

    given = {**vars(request)}
    del given["retry_failed"]
    return recorded("nightly_flow", sweep.name, given, work, prefect, state_of)
