"""The Prefect flow of a sweep: prepare → plan → run → collect → report.

It has few, long tasks; cohorts are Dask futures within one of them.
"""

from typing import Any

from prefect import flow
from prefect.runtime import flow_run

from flows.report.flow import results_artifact
from flows.runtime.artifacts import ProgressArtifact
from flows.runtime.engine import Start
from flows.runtime.recording import Stage, as_task
from flows.sweeping.checks import CheckedSweep, checked_sweep
from flows.sweeping.file import read_sweep
from flows.sweeping.request import SweepRequest
from flows.sweeping.steps import PLAIN, run_sweep


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
    request = SweepRequest(
        sweep_file, store, workers, cluster, retry_failed, certificates, insecure
    )
    return run_in_flow(checked_sweep(request), as_task)


def run_in_flow(checked: CheckedSweep, stage: Stage, start: Start | None = None) -> dict[str, Any]:
    """Run a checked sweep within a flow run, which gets its tasks, progress and results.

    `start` is the cluster, if it is already starting. Returns the summary of `sweep_flow`.
    """
    name = checked.sweep.name
    progress = ProgressArtifact(f"progress-{name}", f"Runs done of the sweep {name}")
    steps = {step: stage(step, function) for step, function in PLAIN.items()}
    summary = run_sweep(checked, steps, start, progress.show)
    if summary["computed"]:
        results_artifact(checked.request.store, name, summary["report"])
    return summary
