"""Prefect's flows, which do what the commands do. They have few, long tasks."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.sorting import FlowRunSort
from prefect.runtime import deployment, flow_run
from prefect.states import Cancelled, Failed, State
from prefect.utilities.timeout import timeout

from cluster.machine import cores
from flows.nightly.night import run_night, state_of
from flows.preparing.preparation import prepare_named
from flows.report.document import write_report
from flows.runtime.processes import end_with_server
from flows.runtime.recording import artifact, stage
from flows.sweeping.file import sweep_called
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest
from flows.views.answer import results_of
from koco_stream.streams.manifest import load_manifest, prepared_names
from storage.store import open_store


def name_of_sweep() -> str:
    given = flow_run.parameters
    return sweep_called(given["sweep_file"], given.get("store", "store")).name


@flow(name="prepare", flow_run_name="{datasets}", validate_parameters=False)
def prepare_flow(datasets: list[str], store: str = "store") -> list[str]:
    """Prepare catalogue datasets that the store lacks; returns the hashes of all named datasets."""
    open_store(store)
    for name in datasets:
        if name not in prepared_names(store):
            stage("prepare", prepare_named, store, name, (), {}, cores())
    return [load_manifest(store, name).dataset_hash for name in datasets]


@flow(name="sweep", flow_run_name=name_of_sweep, validate_parameters=False)
def sweep_flow(
    sweep_file: str,
    store: str = "store",
    workers: int = 0,
    cluster: str = "local",
    retry_failed: bool = False,
    certificates: str | None = None,
    insecure: bool = False,
) -> dict[str, Any]:
    """Run a sweep as `koco sweep` does; returns the summary (`flows.sweeping.launch.run_sweep`)."""
    return launch(
        SweepRequest(sweep_file, store, workers, cluster, retry_failed, certificates, insecure)
    )


@flow(name="report", flow_run_name="{sweep}", validate_parameters=False)
def report_flow(sweep: str, store: str = "store") -> str:
    """Write the report of a sweep again; returns its path."""
    written = str(stage("report", write_report, store, sweep))
    artifact("table", f"results-{sweep}", partial(results_of, store, sweep), written, store)
    return written


@flow(name="nightly", flow_run_name=name_of_sweep, validate_parameters=False)
def nightly_flow(
    sweep_file: str,
    store: str = "store",
    workers: int = 0,
    cluster: str = "local",
    certificates: str | None = None,
    insecure: bool = False,
    seconds: float | None = None,
) -> State[Any]:
    """Recompute a sweep and compare it with the accepted nightly run in `store`.

    The night is named by the time for which Prefect scheduled it, and has at most so many
    `seconds`. It is cancelled if the store has that night, or if a later one is due.
    """
    end_with_server()
    request = SweepRequest(sweep_file, store, workers, cluster, False, certificates, insecure)
    planned = datetime.fromtimestamp(flow_run.scheduled_start_time.timestamp(), UTC)
    last = last_planned(deployment.id) if deployment.id else planned
    if last and last > planned:
        return Cancelled(name="Left out", message=f"the night of {last} is due")
    try:
        with timeout(seconds):
            summary = run_night(request, sweep_called(sweep_file, store), planned)
    except TimeoutError as error:
        return Failed(name="Time limit", message=f"after {seconds} s: {error}")
    if not summary:
        return Cancelled(name="Left out", message=f"the night of {planned} is done")
    return state_of(summary)


def last_planned(deployment_id: object) -> datetime | None:
    passed = {
        "deployment_id": {"any_": [deployment_id]},
        "expected_start_time": {"before_": datetime.now(UTC)},
    }
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(
            flow_run_filter=FlowRunFilter.model_validate(passed),
            sort=FlowRunSort.EXPECTED_START_TIME_DESC,
            limit=1,
        )
    times = [run.expected_start_time for run in runs if run.expected_start_time]
    return datetime.fromtimestamp(times[0].timestamp(), UTC) if times else None
