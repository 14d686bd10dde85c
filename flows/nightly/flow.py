"""The Prefect flow of a nightly run: prepare → sweep → compare."""

from datetime import UTC, datetime
from typing import Any

from prefect import flow
from prefect.runtime import flow_run
from prefect.states import Cancelled, Completed, Failed, State

from flows.nightly.regression import FAILING
from flows.nightly.stages import nights_locked, run_night
from flows.nightly.times import Times
from flows.prepare.flow import RETRIED
from flows.runtime.artifacts import table_artifact
from flows.runtime.processes import end_with_server
from flows.runtime.recording import Function, as_task
from flows.sweeping.file import read_sweep
from flows.sweeping.flow import name_of_sweep, sweep_flow
from flows.sweeping.request import SweepRequest
from storage.nights import read_nights

SHOWN = (
    "dataset",
    "learner",
    "runs",
    "mean_loss",
    "changed",
    "largest_change",
    "numbers",
    "ratio",
    "speed",
)


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
    """Recompute the sweep in `sweep_file` and compare it with the accepted nightly run in `store`.

    The night is named by the time for which Prefect scheduled the flow run. If the store has that
    night, nothing is done; if a later planned time of its schedule has passed too, its night is
    done instead.

    Parameters
    ----------
    sweep_file, store, workers, cluster, certificates, insecure
        Those of `SweepRequest`.
    seconds : float or None
        Time limit of the sweep.

    Returns
    -------
    State
        Completed (first, same numbers, faster), Failed (changed numbers, slower, time limit) or
        Cancelled (the night is done).

    Raises
    ------
    WrongInput
        As `sweep_flow` does.
    """
    end_with_server()
    sweep = read_sweep(sweep_file)
    request = SweepRequest(sweep_file, store, workers, cluster, False, certificates, insecure)
    asked = datetime.fromtimestamp(flow_run.scheduled_start_time.timestamp(), UTC)

    def compute(request: SweepRequest) -> dict[str, Any]:
        found: dict[str, Any] = sweep_flow.with_options(timeout_seconds=seconds)(**vars(request))
        return found

    def stage(name: str, function: Function) -> Function:
        return as_task(name, function, **RETRIED)

    with nights_locked(store):
        if (planned := Times(store, sweep.name).night_of(asked, datetime.now(UTC))) is None:
            return Cancelled(name="Left out", message=f"the night of {asked} is done")
        try:
            summary = run_night(request, sweep, compute, stage, planned)
        except TimeoutError as error:
            return Failed(name="Time limit", message=f"after {seconds} s: {error}")
    return state_of(summary)


def state_of(summary: dict[str, Any]) -> State[Any]:
    """The last state of a nightly run with this summary, which is shown on its page in Prefect."""
    result, details, sweep = summary["result"], summary["details"], summary["sweep"]

    def rows() -> list[dict[str, Any]]:
        history = read_nights(summary["store"], sweep).to_pylist()
        mine = [row for row in history if row["night"] == summary["night"]]
        return [{name: row[name] for name in SHOWN} for row in mine]

    about = (f"**{result}**", *details)
    table_artifact(f"nightly-{sweep}", rows, about, summary["report"], summary["store"])
    ended = Failed if result in FAILING else Completed
    return ended(name=result.capitalize(), message="; ".join([result, *details]), data=summary)
