"""Checkpoints of cohorts: the states of a cohort's runs after a given round, in the store.

Any worker can resume a cohort with bit-identical results. A damaged checkpoint, or one of other
code, is ignored. One stays if its runs may go on for more rounds or with more time.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from koco_stream.errors import WrongInput
from koco_stream.io.array_file import Arrays, opened_arrays, read_header, write_arrays
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.learners.saved import restored, state_arrays
from koco_stream.numerics.compiler import code_hash
from koco_stream.runs.run import Cohort, Pause, RunState
from koco_stream.runs.schemas import points_until
from koco_stream.types import Array

PROGRESS = ("at", "seconds", "status", "error")


def checkpoints_folder(store: AnyPath) -> StorePath:
    """The store's folder of checkpoints."""
    return store_path(store) / "checkpoints"


def checkpoint_of(store: AnyPath, cohort: Cohort) -> StorePath:
    """A cohort's checkpoint file."""
    return checkpoints_folder(store) / f"{cohort.cohort_id}.koco"


def save_cohort(
    where: StorePath,
    rounds: int,
    run_states: Sequence[RunState],
    later: Sequence[int] = (),
    paused: bool = False,
) -> None:
    """Write the runs' states after `rounds` rounds; shared arrays are written once."""
    header = {
        "code": code_hash(),
        "rounds": rounds,
        "later": list(later),
        "paused": paused,
        "runs": [run_state.run.run_id for run_state in run_states],
        "states": [len(run_state.states) for run_state in run_states],
        "progress": [
            {name: getattr(run_state, name) for name in PROGRESS} for run_state in run_states
        ],
    }
    arrays: dict[str, Array] = {}
    for k, run_state in enumerate(run_states):
        arrays |= {f"{k}.curve": run_state.curve, **_own_arrays(k, run_state)}
        for c, state in enumerate(run_state.states):
            arrays |= state_arrays(state, f"{k}.state.{c}.")
    write_arrays(where, header, arrays)


def _own_arrays(k: int, run_state: RunState) -> dict[str, Array]:
    measured = {} if run_state.measurement is None else run_state.measurement.arrays
    return {
        f"{k}.totals": run_state.totals,
        f"{k}.predictions": run_state.predictions,
        **{f"{k}.measured.{name}": array for name, array in measured.items()},
    }


def resumed(where: StorePath, run_states: Sequence[RunState], later: Sequence[int] = ()) -> int:
    """Load a cohort's checkpoint into its new runs; returns the rounds done."""
    return _loaded(where, {one.run.run_id: one for one in run_states}, later)


def continued(store: AnyPath, cohort: Cohort, n_rounds: int, run_states: Sequence[RunState]) -> int:
    """Load paused runs' states into longer runs of `n_rounds` rounds; returns the rounds done."""
    rounds, source = cohort.pause
    later = [n_rounds, *cohort.later]
    mine = np.isin(points_until(rounds, later), points_until(n_rounds, cohort.later))
    paused = {one.run.until(rounds).run_id: one for one in run_states}
    return _loaded(checkpoints_folder(store) / f"{source}.koco", paused, later, mine)


def _loaded(
    where: StorePath,
    run_states: Mapping[str, RunState],
    later: Sequence[int],
    points: Array | None = None,
) -> int:
    """Load runs from a checkpoint that fits; returns the rounds done, or 0."""
    try:
        with opened_arrays(where) as (header, arrays):
            numbers = {run_id: k for k, run_id in enumerate(header["runs"])}
            fits = (header["code"], header["later"]) == (code_hash(), list(later))
            if not fits or not run_states.keys() <= numbers.keys():
                return 0
            histories = dict[int, Any]()
            for run_id, run_state in run_states.items():
                _restore(header, arrays, numbers[run_id], run_state, points, histories)
            return int(header["rounds"])
    except (FileNotFoundError, WrongInput):
        return 0


def _restore(
    header: dict[str, Any],
    arrays: Arrays,
    k: int,
    run_state: RunState,
    points: Array | None,
    histories: dict[int, Any],
) -> None:
    """Load run k, with all or the marked `points` of its curve; restored states share
    `histories`.
    """
    n_states = header["states"][k]
    if not run_state.states and n_states:
        return  # the run could start when the checkpoint was written, but not now
    for name in PROGRESS:
        setattr(run_state, name, header["progress"][k][name])
    curve = arrays[f"{k}.curve"]
    if points is not None:
        run_state.at = int(points[: run_state.at].sum())
        curve = curve[points]
    run_state.curve[:] = curve
    for name, array in _own_arrays(k, run_state).items():
        array[...] = arrays[name]
    # none if the run could not start when the checkpoint was written
    run_state.states = run_state.states[:n_states]
    grows = run_state.run.learner_class.grows
    for c, new in enumerate(run_state.states):
        prefix = f"{k}.state.{c}."
        state = restored(new, arrays, grows, prefix)
        if "history" in state._fields:  # states that shared one history share it again
            place = arrays.place(f"{prefix}history.n")
            state = state._replace(history=histories.setdefault(place, state.history))
        run_state.states[c] = state


def header_of(where: StorePath) -> dict[str, Any]:
    """A checkpoint's header; empty if it cannot be read."""
    try:
        return read_header(where)
    except (FileNotFoundError, WrongInput):
        return {}


def remove_finished(
    store: AnyPath, finished: Callable[[], Set[str]], passed: Set[str] = frozenset()
) -> None:
    """Remove the checkpoints all of whose runs are in `finished()`, as after a split."""
    headers = checkpoints(store)
    done = finished() if headers else passed
    for path, one in headers.items():
        pauses = one["code"] == code_hash() and one["paused"]
        if set(one["runs"]) <= (passed if pauses else done):
            path.remove()


def unfinished(store: AnyPath) -> list[tuple[str, ...]]:
    """The run_ids of each checkpoint of this code."""
    return [tuple(one["runs"]) for one in checkpoints(store).values() if one["code"] == code_hash()]


def paused_runs(store: AnyPath) -> dict[str, Pause]:
    """The pauses by run_id, but for failed and stopped runs: a longer run may do better."""
    return {
        run_id: Pause(one["rounds"], path.name.removesuffix(".koco"))
        for path, one in checkpoints(store).items()
        if one["code"] == code_hash() and one["paused"]
        for run_id, progress in zip(one["runs"], one["progress"], strict=True)
        if progress["status"] not in ("failed", "stopped")
    }


def checkpoints(store: AnyPath) -> dict[StorePath, dict[str, Any]]:
    """The headers of a store's checkpoints, of whatever code."""
    files = checkpoints_folder(store).files(".koco")
    headers = {file: header_of(file) for file in files}
    return {file: header for file, header in headers.items() if header}
