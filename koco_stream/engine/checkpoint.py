"""Checkpoints of cohorts: the states of a cohort's runs after a given round, in the store.

Any worker can resume a cohort from its checkpoint with bit-identical results. One written by other
code, whose numbers may differ, is ignored, and so is a damaged one: the cohort then starts again.
"""

import mmap
from collections.abc import Callable, Sequence
from typing import Any

from koco_stream.io.array_file import read_arrays, read_header, write_arrays
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.learners.saved import restored, state_arrays
from koco_stream.numerics.compiler import code_hash
from koco_stream.runs.run import Cohort, RunState
from koco_stream.types import Array

FORMAT = 1
KEPT = ("at", "seconds", "status", "error")


def checkpoints_folder(store: AnyPath) -> StorePath:
    """The store's folder of cohort checkpoints."""
    return store_path(store) / "checkpoints"


def checkpoint_of(store: AnyPath, cohort: Cohort) -> StorePath:
    """The path of a cohort's checkpoint file."""
    return checkpoints_folder(store) / f"{cohort.cohort_id}.koco"


def save_cohort(where: StorePath, rounds: int, run_states: Sequence[RunState]) -> None:
    """Write the runs' states after `rounds` rounds; an array that several share is written once."""
    written: dict[int, str] = {}
    arrays: dict[str, Array] = {}
    shared: dict[str, str] = {}
    for k, run_state in enumerate(run_states):
        own = {f"{k}.totals": run_state.totals, f"{k}.curve": run_state.curve}
        if run_state.measurement is not None:
            own |= {f"{k}.measured.{n}": a for n, a in run_state.measurement.arrays().items()}
        if run_state.predictions.size:
            own[f"{k}.predictions"] = run_state.predictions
        for prefix, state in zip(_prefixes(k, run_state), run_state.states, strict=True):
            own |= state_arrays(state, prefix)
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
        "progress": [{name: getattr(run_state, name) for name in KEPT} for run_state in run_states],
        "shared": shared,
    }
    with where.written() as temporary:
        write_arrays(temporary, header, arrays)


def resumed(where: StorePath, run_states: Sequence[RunState]) -> int:
    """Load a checkpoint into a cohort's new runs; returns the rounds done, 0 if it is of no use."""
    header, arrays = read_checkpoint(where)
    ids = [run_state.run.run_id for run_state in run_states]
    if header.get("code") != code_hash() or header["runs"] != ids:
        return 0
    arrays |= {name: arrays[first] for name, first in header["shared"].items()}
    histories: dict[int, Any] = {}
    started = {int(name.partition(".")[0]) for name in arrays if ".state." in name}
    for k, (run_state, kept) in enumerate(zip(run_states, header["progress"], strict=True)):
        if not run_state.states and k in started:
            continue  # the run could start when the checkpoint was written, but not now
        for name in KEPT:
            setattr(run_state, name, kept[name])
        run_state.totals[:], run_state.curve[:] = arrays[f"{k}.totals"], arrays[f"{k}.curve"]
        if run_state.measurement is not None:
            of_run = f"{k}.measured."
            own = {n.removeprefix(of_run): a for n, a in arrays.items() if n.startswith(of_run)}
            run_state.measurement.restore(own)
        if run_state.predictions.size:
            run_state.predictions[:] = arrays[f"{k}.predictions"]
        if k not in started:
            run_state.states = []  # the run could not start when the checkpoint was written
            continue
        grows = run_state.run.learner_class.grows
        for c, prefix in enumerate(_prefixes(k, run_state)):
            state = run_state.states[c] = restored(run_state.states[c], arrays, grows, prefix)
            if "history" in state._fields:  # states that shared one history share it again
                history = histories.setdefault(id(arrays[f"{prefix}history.n"]), state.history)
                run_state.states[c] = state._replace(history=history)
    return int(header["rounds"])


def _prefixes(k: int, run_state: RunState) -> list[str]:
    """What the names of the arrays of run k's states begin with."""
    if len(run_state.states) == 1:
        return [f"{k}.state."]
    return [f"{k}.state.{c}." for c in range(len(run_state.states))]


def read_checkpoint(
    where: StorePath, verified: bool = True
) -> tuple[dict[str, Any], dict[str, Array]]:
    """A checkpoint's header, and its arrays if `verified`; empty if missing, damaged or newer."""
    try:
        with where.local() as path, path.open("rb") as handle:
            content = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
            return read_arrays(content, FORMAT) if verified else (read_header(content)[0], {})
    except (FileNotFoundError, ValueError):
        return {}, {}


def remove_finished(store: AnyPath, finished: Callable[[], set[str]]) -> None:
    """Remove the checkpoints all of whose runs are in `finished()`, as after a cohort was split."""
    left = [(path, runs) for path, _, runs in checkpoints(store)]
    done = finished() if left else set()
    for path, runs in left:
        if done.issuperset(runs):
            path.remove()


def unfinished(store: AnyPath) -> list[tuple[str, ...]]:
    """The run_ids of each cohort that has a checkpoint written by this version of the code."""
    return [tuple(runs) for _, code, runs in checkpoints(store) if code == code_hash()]


def checkpoints(store: AnyPath) -> list[tuple[StorePath, str | None, list[str]]]:
    """The readable checkpoints of a store: the file, the code that wrote it, and the run_ids."""
    files = checkpoints_folder(store).files(".koco")
    headers = [(path, read_checkpoint(path, verified=False)[0]) for path in files]
    return [(path, header.get("code"), header["runs"]) for path, header in headers if header]
