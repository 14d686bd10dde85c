"""The Prefect flow of a sweep: prepare → plan → run → collect → report.

It has few, long tasks; cohorts are Dask futures within one of them.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from prefect import Flow, Task, flow, task
from prefect.cache_policies import NO_CACHE
from prefect.states import State

from flows.report.flow import results_artifact
from flows.runtime.artifacts import ProgressArtifact
from flows.runtime.engine import Start
from flows.sweeping.checks import CheckedSweep, checked_sweep
from flows.sweeping.request import SweepRequest
from flows.sweeping.steps import PLAIN, run_sweep
from flows.sweeping.watching import Tally, Watcher

TASKS = {
    name: task(step, name=name, task_run_name=name, cache_policy=NO_CACHE)
    for name, step in PLAIN.items()
}


@flow(name="sweep", validate_parameters=False)
def sweep_flow(
    sweep_file: str,
    store: str,
    workers: int,
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
        As `read_checked` does; for workers that cannot be used; and at the end for datasets
        that were found damaged.
    """
    request = SweepRequest(
        sweep_file, store, workers, cluster, retry_failed, certificates, insecure
    )
    return run_in_flow(checked_sweep(request))


def run_in_flow(
    checked: CheckedSweep, start: Start | None = None, tasks: list[State[Any]] | None = None
) -> dict[str, Any]:
    """Run a checked sweep within a flow run, which gets its tasks, progress and results.

    `start` is the cluster, if it is already starting; the final states of the tasks are appended to
    `tasks`. Returns the summary described at `sweep_flow`.
    """
    name = checked.sweep.name
    progress = ProgressArtifact(f"progress-{name}", f"Runs done of the sweep {name}")

    def steps(step: Task[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            ended = step(*args, return_state=True)
            if tasks is not None:
                tasks.append(ended)
            return ended.result()

        return run

    of_tasks = {name: steps(step) for name, step in TASKS.items()}
    summary = run_sweep(checked, of_tasks, start, [ShareShown(progress.show)])
    if summary["computed"]:
        results_artifact(checked.request.store, name, summary["report"])
    return summary


class ShareShown(Watcher):
    """Calls `show` with the share of the runs that are done, after each cohort."""

    def __init__(self, show: Callable[[float], None]) -> None:
        self.show = show

    def received(self, tally: Tally) -> None:
        """Show the share."""
        self.show(tally.done / tally.runs)


def flow_of(known: Flow[..., Any], work: Callable[[], Any]) -> Flow[..., Any]:
    """A flow with the name and parameters of `known` that calls `work` instead of its function.

    It is used where files were read before the flow.
    """

    @wraps(known.fn)
    def run(*_: object) -> Any:
        return work()

    return flow(run, name=known.name, validate_parameters=False)
