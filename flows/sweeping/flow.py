"""The Prefect flow of a sweep: prepare → plan → run → collect → report.

It has few, long tasks; cohorts are Dask futures within one of them.
"""

from typing import Any

from prefect import flow
from prefect.runtime import flow_run

from flows.runtime.recording import as_task
from flows.sweeping.file import read_sweep
from flows.sweeping.launch import launch
from flows.sweeping.request import SweepRequest


def name_of_sweep() -> str:
    """The name of the sweep that this flow run is of."""
    return read_sweep(flow_run.parameters["sweep_file"]).name


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
    """Run the sweep in `sweep_file` on `store`. The parameters are those of `SweepRequest`.

    Returns
    -------
    dict
        Summary: number of runs and of computed ones, their statuses, seconds by phase, and the
        report's path.

    Raises
    ------
    WrongInput
        As `CheckedSweep` does; for workers that cannot be used; and at the end for datasets
        that were found damaged.
    """
    return launch(
        SweepRequest(sweep_file, store, workers, cluster, retry_failed, certificates, insecure),
        stage=as_task,
    )
