"""The Prefect flow of a nightly run: prepare → sweep → report → compare.

It recomputes all runs of a sweep in a separate store, then reports changed numbers and slower
learners relative to the accepted nightly run.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from prefect import flow, task
from prefect.context import FlowRunContext
from prefect.states import Cancelled, Completed, Failed, State

from cluster.site import LOCAL
from flows.nightly.night import Night, end_night, history_rows, lines_of, opened_night
from flows.nightly.regression import FAILING, changes, result_of
from flows.nightly.speeds import measure_speeds
from flows.nightly.times import TRIES, Times
from flows.prepare.flow import RETRIED, prepare_one
from flows.runtime.artifacts import linked, table_artifact
from flows.runtime.console import say
from flows.runtime.processes import end_with_server, locked
from flows.sweeping.checks import all_runs, checked_sweep
from flows.sweeping.file import Sweep, read_sweep
from flows.sweeping.flow import flow_of, run_in_flow, sweep_flow
from flows.sweeping.request import SweepRequest
from koco_stream.streams.manifest import load_manifest, prepared_names
from storage.catalogue.entries import CATALOGUE
from storage.generated.generators import prepare_synthetic
from storage.nights import accept, add_night, numbers_of, read_accepted, read_nights
from storage.store import open_store

EARLY_SECONDS = 5.0  # longest wait: Prefect may start a run up to a second early
NIGHTLY = "nightly"  # name of the lock and of the flow


def prepare_missing(store: str, sweep: Sweep) -> None:
    """Prepare the generated and catalogue datasets of a sweep that the store lacks.

    Other missing datasets are reported by the sweep itself.
    """
    for use in sweep.datasets:
        if use.given is not None:
            prepare_synthetic(store, use.generator, use.given)
        elif use.name in CATALOGUE and use.name not in prepared_names(store):
            prepare_one(store, use.name)


@task(name="sweep", **RETRIED)
def compute(night: Night) -> None:
    """Run the sweep and write its report, within the time limit of the nightly run.

    Runs that this nightly run finished before an interruption are not computed again.
    """
    checked = checked_sweep(replace(night.request, store=str(night.path)), night.sweep)
    limited = flow_of(sweep_flow, lambda: run_in_flow(checked)).with_options(
        timeout_seconds=night.seconds
    )
    night.summary = limited(**vars(checked.request))


@task(name="compare", **RETRIED)
def compare(night: Night) -> None:
    """Compare a nightly run with the accepted one, and add the result to the history.

    The run becomes the accepted one if it is the first of its sweep, or if the user asked for that.
    """
    store, name = night.store, night.sweep.name
    numbers, accepted = numbers_of(night.path), read_accepted(store, name)
    history = read_nights(store, name).to_pylist()
    runs = all_runs(
        night.sweep, {use.name: load_manifest(store, use.name) for use in night.sweep.datasets}
    )
    night.changes = [] if accepted is None else changes(accepted, numbers)
    night.speeds = measure_speeds(night.path, runs, numbers, history)
    night.result = result_of(accepted is None, night.changes, night.speeds)
    add_night(store, name, history_rows(night, numbers, accepted is None))
    if accepted is None or night.accepting:
        accept(store, name, night.name, numbers)
    end_night(night.path)


@flow(name=NIGHTLY, validate_parameters=False)
def nightly_flow(
    sweep_file: str,
    store: str,
    cluster: str = LOCAL,
    workers: int = 0,
    certificates: str | None = None,
    insecure: bool = False,
    accepting: bool = False,
    seconds: float | None = None,
    schedule: str | None = None,
    planned: str | None = None,
) -> State[Any]:
    """Recompute the sweep in `sweep_file` and compare it with the accepted nightly run in `store`.

    Parameters
    ----------
    sweep_file, store, cluster, workers, certificates, insecure
        Those of `SweepRequest`.
    accepting : bool
        Whether to accept the new numbers and speeds, whatever the comparison finds.
    seconds : float or None
        Time limit of the sweep.
    schedule : str or None
        Name of the schedule in `koco serve` that this run belongs to.
    planned : str or None
        Planned time in ISO format. The run of a schedule's planned time is done once, even if
        the flow is started for it several times.

    Returns
    -------
    State
        Completed (first, same numbers, faster), Failed (changed numbers, slower, time limit,
        given up) or Cancelled (the planned time needs no run).

    Raises
    ------
    WrongInput
        As `sweep_flow` does.
    """
    end_with_server()
    request = SweepRequest(
        sweep_file, store, workers, cluster=cluster, certificates=certificates, insecure=insecure
    )
    return run_night(
        Night(
            read_sweep(sweep_file),
            request,
            accepting,
            seconds,
            schedule,
            planned_time(planned) if schedule else None,
        )
    )


def run_night(night: Night) -> State[Any]:
    """Wait for the store's lock, then do a nightly run; returns its final state."""
    open_store(night.store)
    with locked(
        night.store, NIGHTLY, f"another nightly run is under way on {night.store}; waiting for it"
    ):
        if night.planned is None or night.schedule is None:
            return limited_night(night, "started by hand")
        return planned_night(night, Times(night.store, night.schedule), night.planned)


def planned_night(night: Night, times: Times, planned: datetime) -> State[Any]:
    """Do the nightly run of a schedule's planned time, unless that time was handled before.

    An interrupted run is repeated at most `TRIES` times in all.
    """
    time.sleep(min(max((planned - datetime.now(UTC)).total_seconds(), 0.0), EARLY_SECONDS))
    now = datetime.now(UTC)
    if reason := times.why_not(planned, now):
        return Cancelled(name="Left out", message=reason)
    if times.note_begun(planned, now) > TRIES:
        times.note_ended(planned, now, "given up")
        return Failed(name="Given up", message=f"it was interrupted {TRIES} times")
    try:
        state = limited_night(night, f"planned for {planned.isoformat(timespec='seconds')}")
    except Exception as error:
        times.note_ended(planned, datetime.now(UTC), f"{type(error).__name__}: {error}")
        raise
    times.note_ended(planned, datetime.now(UTC), str(state.name))
    return state


def limited_night(night: Night, why: str) -> State[Any]:
    """Do a nightly run; returns a failed state if it exceeds the sweep's time limit."""
    say(f"nightly {night.sweep.name}: {why}")
    try:
        return one_night(night)
    except TimeoutError as error:
        limit = f"the sweep took longer than {night.seconds:g} s: " if night.seconds else ""
        return Failed(name="Time limit", message=f"{limit}{error}")


def one_night(night: Night) -> State[Any]:
    """Prepare, sweep, report and compare; returns the final state with a summary.

    The caller holds the lock for nightly runs.
    """
    begun = time.monotonic()
    prepare_missing(night.store, night.sweep)
    night.path, night.name = opened_night(night.store, night.sweep)
    for step in (compute, compare):
        night.tasks.append(step(night, return_state=True))
        night.tasks[-1].result()  # raises what the task raised
    history = read_nights(night.store, night.sweep.name).to_pylist()
    lines = lines_of(night, history)
    say("\n  ".join([f"nightly {night.sweep.name}: {night.result}", *lines]))
    show(night, history, lines)
    summary = {
        "sweep": night.sweep.name,
        "night": night.name,
        "result": night.result,
        "details": lines,
        **{name: night.summary[name] for name in ("runs", "computed", "statuses", "report")},
        "seconds": round(time.monotonic() - begun, 2),
    }
    ended = Failed if night.result in FAILING else Completed
    return ended(
        name=night.result.capitalize(), message="; ".join([night.result, *lines]), data=summary
    )


SHOWN = (
    "dataset",
    "learner",
    "runs",
    "mean_loss",
    "changed",
    "largest_change",
    "numbers",
    "ratio",
    "expected",
    "speed",
)


def show(night: Night, history: Sequence[dict[str, Any]], lines: Sequence[str]) -> None:
    """Add a table with the result of a nightly run to the flow run's page in Prefect."""
    rows = [{name: row[name] for name in SHOWN} for row in history if row["night"] == night.name]
    about = [
        f"**{night.result}**",
        *lines,
        f"Report: {linked(night.summary['report'])}",
        f"Store: {linked(night.store)}",
    ]
    table_artifact(f"nightly-{night.sweep.name}", rows, "\n\n".join(about))


def planned_time(given: str | None) -> datetime | None:
    """Planned time of this flow run in UTC; None if somebody started it by hand.

    It is `given` if that is set, else the time for which Prefect's scheduler created the flow run.
    """
    if given:
        return datetime.fromisoformat(given).astimezone(UTC)
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is None or not run.auto_scheduled or run.expected_start_time is None:
        return None
    return datetime.fromtimestamp(run.expected_start_time.timestamp(), UTC)
