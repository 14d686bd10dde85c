"""The nightly flow: prepare → sweep → report → compare. All runs of a sweep anew, in a store of
their own; then what has changed since the accepted run, and what has become slower.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext
from prefect.states import Cancelled, Completed, Failed, State
from prefect.tasks import exponential_backoff

from cluster.clusters import LOCAL
from flows.nightly.night import code, end_night, night_path, opened_night
from flows.nightly.regression import (
    CHANGED,
    FAILING,
    FASTER,
    SLOWER,
    UNCLEAR,
    Change,
    Pair,
    Speed,
    changes,
    result_of,
)
from flows.nightly.speeds import measure_speeds
from flows.nightly.times import TRIES, Times
from flows.prepare.flow import prepare_one
from flows.runtime.artifacts import linked, table_artifact
from flows.runtime.console import say
from flows.runtime.locks import locked
from flows.runtime.processes import end_with_server
from flows.sweep.file import Sweep, read_sweep
from flows.sweep.flow import TASKS, flow_of, sweep_flow
from flows.sweep.request import SweepRequest
from flows.sweep.steps import Work, run_sweep
from koco_stream.engine.calibration import VERSION
from koco_stream.engine.result_file import machine
from koco_stream.errors import StoreUnavailable
from koco_stream.io.files import content_hash
from koco_stream.streams.manifest import load_manifest, prepared_names
from storage.catalogue.entries import CATALOGUE
from storage.generated.generators import prepare_synthetic
from storage.nights import accept, add_night, numbers_of, read_accepted, read_nights
from storage.results import read_runs
from storage.store import open_store

EARLY_SECONDS = 5.0  # Prefect starts a run up to a second before its time
NIGHTLY = "nightly"  # the lock, and the flow
RETRIES, PAUSES = 4, exponential_backoff(30)  # 30, 60, 120, 240 seconds


def store_unavailable(task: Any, run: Any, state: State[Any]) -> bool:
    """Whether a task failed because an object store did not answer: then it is tried again."""
    error = state.result(raise_on_failure=False)
    if isinstance(error, StoreUnavailable):
        say(f"{error}; trying again after a while")
        return True
    return False


class Night:
    """What the tasks of one night share. A plain object on purpose: see
    `flows.sweep.steps.Work`.
    """

    def __init__(
        self,
        sweep: Sweep,
        request: SweepRequest,
        accepting: bool = False,
        seconds: float | None = None,
        schedule: str | None = None,
    ) -> None:
        self.sweep, self.request, self.store = sweep, request, request.store
        self.accepting, self.seconds, self.schedule = accepting, seconds, schedule
        self.planned: datetime | None = None
        self.path, self.name = night_path(self.store, sweep.name), ""
        self.summary: dict[str, Any] = {}
        self.found: list[Change] = []
        self.speeds: list[Speed] = []
        self.result = ""


def prepare_missing(store: str, sweep: Sweep) -> None:
    """Prepare what the sweep needs and the store does not have: generated datasets, and those of
    the catalogue. Others are left to the sweep, which says what to do.
    """
    there = set(prepared_names(store))
    for use in sweep.datasets:
        if use.given is not None:
            prepare_synthetic(store, use.generator, use.given)
        elif use.name not in there and use.name in CATALOGUE:
            prepare_one(store, use.name)


@task(
    name="sweep",
    cache_policy=NO_CACHE,
    retries=RETRIES,
    retry_delay_seconds=PAUSES,
    retry_condition_fn=store_unavailable,
)
def compute(night: Night) -> None:
    """All runs of the sweep that this night has not computed yet, and their report; within the
    night's seconds.
    """
    work = Work(replace(night.request, store=str(night.path)), night.sweep)
    limited = flow_of(sweep_flow, lambda: run_sweep(work, TASKS)).with_options(
        timeout_seconds=night.seconds
    )
    night.summary = limited(**vars(work.request))


@task(
    name="compare",
    cache_policy=NO_CACHE,
    retries=RETRIES,
    retry_delay_seconds=PAUSES,
    retry_condition_fn=store_unavailable,
)
def compare(night: Night) -> None:
    """Compare the night with the accepted one, and add it to the history; the first one, and one
    that is to be, is accepted.
    """
    store, name = night.store, night.sweep.name
    numbers, history, accepted = (
        numbers_of(night.path),
        read_nights(store, name).to_pylist(),
        read_accepted(store, name),
    )
    manifests = {use.name: load_manifest(store, use.name) for use in night.sweep.datasets}
    night.found = [] if accepted is None else changes(accepted, numbers)
    night.speeds = measure_speeds(night.path, night.sweep.runs(dict(manifests)), numbers, history)
    night.result = result_of(accepted is None, night.found, night.speeds)
    add_night(store, name, history_rows(night, numbers, accepted is None))
    if accepted is None or night.accepting:
        accept(store, name, night.name, numbers)
    end_night(night.path)


def history_rows(night: Night, numbers: pa.Table, is_first: bool) -> list[dict[str, Any]]:
    """The night's rows of the table `history`."""
    speeds = {(speed.dataset, speed.learner): speed for speed in night.speeds}
    seconds: dict[Pair, float] = {}
    for row in read_runs(
        night.path, ("run_id", "status", "dataset", "learner", "seconds")
    ).to_pylist():
        seconds[row["dataset"], row["learner"]] = (
            seconds.get((row["dataset"], row["learner"]), 0.0) + row["seconds"]
        )
    by_pair: dict[Pair, list[dict[str, Any]]] = {}
    for row in numbers.to_pylist():
        by_pair.setdefault((row["dataset"], row["learner"]), []).append(row)
    common = {
        "night": night.name,
        "ended": datetime.now(UTC),
        "planned": night.planned,
        "schedule": night.schedule,
        "sweep": night.sweep.name,
        "result": night.result,
        "accepted": False,
        "code": code(),
        "calibration": VERSION,
        "host": machine(),
    }
    rows = []
    for pair, mine in by_pair.items():
        speed = speeds.get(pair)
        found = [change for change in night.found if (change.dataset, change.learner) == pair]
        other = [change for change in found if change.what != "new"]
        losses = [row["mean_loss"] for row in mine if row["mean_loss"] is not None]
        rows.append(
            {
                **common,
                "dataset": pair[0],
                "learner": pair[1],
                "runs": len(mine),
                "digest": content_hash([row["digest"] for row in mine]),
                "mean_loss": sum(losses) / len(losses) if losses else None,
                "changed": sum(change.runs for change in other),
                "largest_change": max(
                    (change.largest for change in other if change.largest is not None), default=None
                ),
                "numbers": (
                    "first" if is_first else "changed" if other else "new" if found else "same"
                ),
                "probe": speed and speed.probe,
                "probe_rows": speed and speed.rows,
                "ratio": speed and speed.ratio,
                "expected": speed and speed.expected,
                "speed": speed and speed.verdict,
                "scan_seconds": seconds.get(pair),
            }
        )
    return rows


def explained(night: Night, history: Sequence[dict[str, Any]]) -> list[str]:
    """The night's result in lines for people: what has changed, where, by how much, and what else
    is not as it was.
    """
    lines = [str(change) for change in night.found]
    lines += [str(speed) for speed in night.speeds if speed.verdict in (SLOWER, FASTER, UNCLEAR)]
    accepted = next(
        (row for row in reversed(history) if row["accepted"] and row["night"] != night.name), None
    )
    if night.result == CHANGED and accepted:
        same = accepted["code"] == code()
        lines.append(
            "code, versions and sweep are those of the accepted run: its numbers should have come"
            " out again"
            if same
            else (
                f"code or versions are not those of the accepted run: {accepted['code']} then,"
                f" {code()} now"
            )
        )
    if night.result in FAILING:
        lines.append(
            f"if this is as it should be: koco accept {night.sweep.name} --store {night.store}"
        )
    return lines


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
    """Run the sweep in `sweep_file` anew and compare it with the last accepted nightly run on
    `store`; the state says what came out.

    It ends as Completed (first, same numbers, faster) or Failed (changed numbers, slower).
    `seconds` is the time limit of the sweep. Of a `schedule` that `koco serve` knows, a `planned`
    time is done once, however often this is started for it. Raises `WrongInput` as `sweep_flow`
    does.
    """
    end_with_server()
    request = SweepRequest(
        sweep_file, store, workers, cluster=cluster, certificates=certificates, insecure=insecure
    )
    night = Night(read_sweep(sweep_file), request, accepting, seconds, schedule)
    night.planned = planned_time(planned) if schedule else None
    return run_night(night)


def run_night(night: Night) -> State[Any]:
    """The night, when the store's lock is free; a planned time once, however often this is begun
    for it.
    """
    store, at, seconds = night.store, night.planned, night.seconds
    open_store(store)
    with locked(store, NIGHTLY, f"another nightly run is under way on {store}; waiting for it"):
        times = Times(store, night.schedule) if night.schedule and at else None
        if times and at:
            time.sleep(min(max((at - datetime.now(UTC)).total_seconds(), 0.0), EARLY_SECONDS))
            now = datetime.now(UTC)
            if reason := times.why_not(at, now):
                return Cancelled(name="Left out", message=reason)
            if times.note_begun(at, now) > TRIES:
                times.note_ended(at, now, "given up")
                return Failed(name="Given up", message=f"it was cut {TRIES} times")
        say(
            f"nightly {night.sweep.name}:"
            f" {'planned for ' + at.isoformat(timespec='seconds') if at else 'started by hand'}"
        )
        try:
            state = one_night(night)
        except TimeoutError as error:
            state = Failed(
                name="Time limit",
                message=(
                    f"the sweep took longer than {seconds:g} s: {error}" if seconds else str(error)
                ),
            )
        except Exception as error:
            if times and at:
                times.note_ended(at, datetime.now(UTC), f"{type(error).__name__}: {error}")
            raise
        if times and at:
            times.note_ended(at, datetime.now(UTC), str(state.name))
        return state


def one_night(night: Night) -> State[Any]:
    """The night itself, by whoever holds the lock: prepare, sweep, report, compare; the state that
    its result asks for.
    """
    begun = time.monotonic()
    prepare_missing(night.store, night.sweep)
    night.path, night.name = opened_night(night.store, night.sweep)
    compute(night)
    compare(night)
    history = read_nights(night.store, night.sweep.name).to_pylist()
    lines = explained(night, history)
    for line in (f"nightly {night.sweep.name}: {night.result}", *(f"  {line}" for line in lines)):
        say(line)
    show(night, history, lines)
    summary = {
        "sweep": night.sweep.name,
        "night": night.name,
        "result": night.result,
        "details": lines,
        "runs": night.summary["runs"],
        "computed": night.summary["computed"],
        "statuses": night.summary["statuses"],
        "report": night.summary["report"],
        "seconds": round(time.monotonic() - begun, 2),
    }
    ended = Failed if night.result in FAILING else Completed
    return ended(
        name=night.result.capitalize(), message="; ".join([night.result, *lines]), data=summary
    )


def show(night: Night, history: Sequence[dict[str, Any]], lines: Sequence[str]) -> None:
    """The result as an artifact of the flow run."""
    columns = (
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
    rows = [{name: row[name] for name in columns} for row in history if row["night"] == night.name]
    about = [
        f"**{night.result}**",
        *lines,
        f"Report: {linked(night.summary['report'])}",
        f"Store: {linked(night.store)}",
    ]
    table_artifact(f"nightly-{night.sweep.name}", rows, "\n\n".join(about))


def planned_time(given: str | None) -> datetime | None:
    """The time that this flow run was planned for: as it was told, or, if Prefect's scheduler made
    it, as that says; None if somebody started it now.
    """
    if given:
        return datetime.fromisoformat(given).astimezone(UTC)
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is None or not run.auto_scheduled or run.expected_start_time is None:
        return None
    return datetime.fromtimestamp(run.expected_start_time.timestamp(), UTC)
