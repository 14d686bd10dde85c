"""Runs that take too much memory or time end, and their cohort goes on."""

from dataclasses import replace
from pathlib import Path

from koco_stream.engine.checkpoint import checkpoint_of, save_cohort
from koco_stream.errors import TimeLimit
from koco_stream.io.fingerprint import free_bytes
from koco_stream.learners.saved import state_arrays
from koco_stream.runs.run import Cohort, RunState


def rows_in_time(cohort: Cohort, n_rows: int) -> int:
    """The most rows of a block, so that late runs stop soon."""
    # a run takes a twentieth of its time limit, as planned, between two looks at it
    rows = n_rows * 0.05 * cohort.seconds_allowed / cohort.seconds
    return int(min(max(64, rows), n_rows))  # fewer would cost some rows of a fast learner


def stop_late(store: str, cohort: Cohort, done: int, run_states: list[RunState]) -> set[str]:
    """Stop the runs that have reached their time limit after `done` rounds."""
    saved = set()
    for seconds in {one.seconds for one in run_states if one.is_late}:
        stopped = [one for one in run_states if one.is_late and one.seconds == seconds]
        part = replace(cohort, runs=tuple(one.run for one in stopped))
        if part.resumable:
            save_cohort(checkpoint_of(store, part), done, stopped, cohort.later)
            saved.add(part.cohort_id)
        for one in stopped:
            one.fail(
                TimeLimit(
                    f"time_limit = {one.time_limit:g} s was reached after {done:,} rounds; with a"
                    " larger one, the sweep goes on with this run"
                )
            )
    return saved


def fail_outgrown(run_states: list[RunState], states_bytes: int) -> None:
    """End the runs with the largest dictionaries, until all states fit `states_bytes`."""
    live = [one for one in run_states if one.run.open_ended and one.status == "ok"]
    while live and (taken := bytes_of(run_states)) > states_bytes:
        largest = max(live, key=lambda one: bytes_of([one]))
        joined = largest.run.learner_class.joined(largest.states[0])
        points = 0 if joined is None else joined.size
        largest.fail(
            MemoryError(
                f"its dictionary had {points:,} points after {int(largest.totals[0]):,} rounds, and"
                f" the states of its cohort took {taken >> 20:,} MiB of the {states_bytes >> 20:,}"
                " MiB that its worker has for them; scale the features, give a larger bandwidth or"
                " ridge, limit the dictionary (max_dictionary), or use workers with more memory"
            )
        )
        largest.states = []
        live.remove(largest)


def has_room(store: str, run_states: list[RunState]) -> bool:
    """Whether the disk has room for the states of a cohort that pauses, and of many others."""
    free = None if "://" in store else free_bytes(Path(store))
    return free is None or bytes_of(run_states) <= 0.01 * free


def bytes_of(run_states: list[RunState]) -> int:
    """The bytes of the runs' states; a shared array counts once."""
    arrays = {
        id(array): array.nbytes
        for run_state in run_states
        for state in run_state.states
        for array in state_arrays(state).values()
    }
    return sum(arrays.values())
