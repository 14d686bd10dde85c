"""Checkpoints of cohorts: the states of its runs at a round that the plan fixed, in the store, so
that any worker goes on from there to the same bits.

A checkpoint says which code wrote it: other code may have other numbers, and begins again. So does
whoever finds it damaged: all that it saves is time.
"""

import mmap
from collections.abc import Callable, Sequence
from typing import Any

from koco_stream.io.array_file import NotWhole, read_arrays, read_header, write_arrays
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.learners import learner_named
from koco_stream.learners.saved import restored, state_arrays
from koco_stream.numerics.compiler import code_hash
from koco_stream.runs.run import Cohort, RunState
from koco_stream.types import Array

FORMAT = 1
KEPT = ("at", "seconds", "status", "error")


def checkpoints_folder(store: AnyPath) -> StorePath:
    """Where cohorts keep their checkpoints."""
    return store_path(store) / "checkpoints"


def checkpoint_of(store: AnyPath, cohort: Cohort) -> StorePath:
    """Where this cohort keeps its checkpoint."""
    return checkpoints_folder(store) / f"{cohort.cohort_id}.koco"


def save_cohort(where: StorePath, rounds: int, run_states: Sequence[RunState]) -> None:
    """Save the runs after so many rounds. What they share (the rows seen) is written once."""
    written: dict[int, str] = {}
    arrays: dict[str, Array] = {}
    shared: dict[str, str] = {}
    for k, run_state in enumerate(run_states):
        own = {
            f"{k}.totals": run_state.totals,
            f"{k}.curve": run_state.curve,
            **({} if run_state.state is None else state_arrays(run_state.state, f"{k}.state.")),
        }
        for name, array in own.items():
            first = written.setdefault(id(array), name)
            if first == name:
                arrays[name] = array
            else:
                shared[name] = first
    header = {
        "format": FORMAT,
        "code": code_hash(),
        "rounds": rounds,
        "runs": [run_state.run.run_id for run_state in run_states],
        # in the file since its first format: a run's progress beside its arrays
        "members": [{name: getattr(run_state, name) for name in KEPT} for run_state in run_states],
        "shared": shared,
    }
    with where.written() as temporary:
        write_arrays(temporary, header, arrays)


def resumed(where: StorePath, run_states: Sequence[RunState]) -> int:
    """Put the runs where their checkpoint has them; returns the rounds done, 0 if there is none
    of these runs by this code, or a damaged one.
    """
    header, arrays = read_checkpoint(where)
    if header.get("code") != code_hash() or header["runs"] != [
        run_state.run.run_id for run_state in run_states
    ]:
        return 0
    arrays |= {name: arrays[first] for name, first in header["shared"].items()}
    histories: dict[int, Any] = {}
    states: list[dict[str, Array]] = [{} for _ in run_states]
    for name, array in arrays.items():
        number, _, inside = name.partition(".state.")
        if inside:
            states[int(number)][inside] = array
    for k, (run_state, kept) in enumerate(zip(run_states, header["members"], strict=True)):
        if run_state.state is None and states[k]:
            continue  # it began then, and now it failed to
        for name in KEPT:
            setattr(run_state, name, kept[name])
        run_state.totals[:], run_state.curve[:] = arrays[f"{k}.totals"], arrays[f"{k}.curve"]
        if not states[k]:
            run_state.state = None  # it failed to begin
            continue
        grows = learner_named(run_state.run.learner).grows
        state = run_state.state = restored(run_state.state, states[k], grows)
        if "history" in state._fields:  # one for all that share it, as it was
            history = histories.setdefault(id(states[k]["history.n"]), state.history)
            run_state.state = state._replace(history=history)
    return int(header["rounds"])


def read_checkpoint(where: StorePath) -> tuple[dict[str, Any], dict[str, Array]]:
    """A checkpoint's header and arrays, which are views of the mapped file; nothing if there is
    none, or it is damaged or of a newer format.
    """
    try:
        with where.local() as path, path.open("rb") as handle:
            return read_arrays(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ), FORMAT)
    except (FileNotFoundError, ValueError):
        return {}, {}


def header_of(where: StorePath) -> dict[str, Any]:
    """A checkpoint's header; nothing if there is none, or it cannot be read. Whether the arrays are
    whole is seen by who opens it.
    """
    try:
        with where.local() as path:
            return read_header(path)
    except (FileNotFoundError, NotWhole):
        return {}


def remove_finished(store: AnyPath, finished: Callable[[], set[str]]) -> None:
    """Remove the checkpoints of which all runs are among `finished`, which is asked if there are
    any: of cohorts that were cut in two, or planned anew.
    """
    left = [
        (path, header)
        for path in checkpoints_folder(store).files(".koco")
        if (header := header_of(path))
    ]
    done = finished() if left else set()
    for path, header in left:
        if done.issuperset(header["runs"]):
            path.remove()


def unfinished(store: AnyPath) -> list[tuple[str, ...]]:
    """The run_ids of each cohort that left a checkpoint which this code can go on from."""
    headers = [header_of(path) for path in checkpoints_folder(store).files(".koco")]
    return [tuple(header["runs"]) for header in headers if header.get("code") == code_hash()]
