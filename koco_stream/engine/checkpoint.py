"""Checkpoints of cohorts: the states of a cohort's runs after a given round, in the store.

Any worker can resume a cohort from its checkpoint with bit-identical results. One written by other
code, whose numbers may differ, is ignored, and so is a damaged one: the cohort then starts again.

The last checkpoint of runs that may go on for more rounds is kept when their cohort has ended.
Longer runs continue from there. They are in other cohorts, which need the states of a few runs
only. So a checkpoint is a sequence of array files (`io.array_file`): the first says where the
others are, and each of these has the state of one run, with a checksum of its own. What is mostly
zero is packed (`io.packed_arrays`).
"""

import mmap
from collections.abc import Callable, Collection, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from koco_stream.io.array_file import FORMAT, forget_pages, read_arrays, read_header, write_arrays
from koco_stream.io.packed_arrays import Unpacked, packed
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.learners.saved import restored, state_arrays
from koco_stream.numerics.compiler import code_hash
from koco_stream.runs.run import Cohort, Kept, RunState
from koco_stream.runs.schemas import points_until
from koco_stream.types import Array

KEPT = ("at", "seconds", "status", "error")


def checkpoints_folder(store: AnyPath) -> StorePath:
    """The store's folder of cohort checkpoints."""
    return store_path(store) / "checkpoints"


def checkpoint_of(store: AnyPath, cohort: Cohort) -> StorePath:
    """The path of a cohort's checkpoint file."""
    return _path(store, cohort.cohort_id)


def _path(store: AnyPath, cohort_id: str) -> StorePath:
    return checkpoints_folder(store) / f"{cohort_id}.koco"


def save_cohort(
    where: StorePath,
    rounds: int,
    run_states: Sequence[RunState],
    later: Sequence[int] = (),
    ended: bool = False,
) -> None:
    """Write the runs' states after `rounds` rounds; an array that several share is written once.

    `later` are the rounds of longer runs, which go on from there if the cohort has `ended`.
    """
    first_of: dict[int, str] = {}
    arrays = [_arrays_of(k, run_state) for k, run_state in enumerate(run_states)]
    shared = {
        name: first
        for own in arrays
        for name, array in own.items()
        if (first := first_of.setdefault(id(array), name)) != name
    }
    header = {
        "code": code_hash(),
        "rounds": rounds,
        "later": list(later),
        "ended": ended,
        "runs": [run_state.run.run_id for run_state in run_states],
        "progress": [{name: getattr(run_state, name) for name in KEPT} for run_state in run_states],
        "shared": shared,
    }
    places = np.zeros(len(run_states) + 1, np.int64)
    with where.written() as temporary, temporary.open("wb") as handle:
        write_arrays(handle, header, {"places": places})
        for k, own in enumerate(arrays):
            places[k] = handle.tell()
            kept, about = packed({name: a for name, a in own.items() if name not in shared})
            write_arrays(handle, {"packed": about}, kept)
        places[-1] = handle.tell()
        handle.seek(0)  # now that all places are known: the same length
        write_arrays(handle, header, {"places": places})


def _arrays_of(k: int, run_state: RunState) -> dict[str, Array]:
    """All arrays of run k by the names that they have in a checkpoint."""
    own = {f"{k}.totals": run_state.totals, f"{k}.curve": run_state.curve}
    if run_state.measurement is not None:
        own |= {f"{k}.measured.{n}": a for n, a in run_state.measurement.arrays().items()}
    if run_state.predictions.size:
        own[f"{k}.predictions"] = run_state.predictions
    for prefix, state in zip(_prefixes(k, run_state), run_state.states, strict=True):
        own |= state_arrays(state, prefix)
    return own


def resumed(where: StorePath, run_states: Sequence[RunState], later: Sequence[int] = ()) -> int:
    """Load a checkpoint into a cohort's new runs; returns the rounds done, 0 if it is of no use.

    `later` are the rounds of longer runs that may go on from these.
    """
    saved = Saved.read(where)
    ids = [run_state.run.run_id for run_state in run_states]
    if saved is None or (saved.header["runs"], saved.header["later"]) != (ids, list(later)):
        return 0
    for k, run_state in enumerate(run_states):
        saved.restore(k, run_state)
    return int(saved.header["rounds"])


def continued(store: AnyPath, cohort: Cohort, n_rounds: int, run_states: Sequence[RunState]) -> int:
    """Load the states that shorter runs have left into a cohort's new runs of `n_rounds` rounds.

    Returns the rounds done: 0 if there are no such states, or if one of them is of no use.
    """
    if not cohort.kept:
        return 0
    later = [n_rounds, *cohort.later]
    points = points_until(cohort.begun, later)
    mine = np.isin(points, points_until(n_rounds, cohort.later))
    asked: dict[str, set[str]] = {}
    for kept in cohort.kept:
        asked.setdefault(kept.cohort_id, set()).add(kept.run_id)
    files = {
        cohort_id: Saved.read(_path(store, cohort_id), runs) for cohort_id, runs in asked.items()
    }
    for saved in files.values():
        if saved is None or (saved.header["rounds"], saved.header["later"]) != (
            cohort.begun,
            later,
        ):
            return 0
    for run_state, kept in zip(run_states, cohort.kept, strict=True):
        saved = files[kept.cohort_id]
        if saved is not None:
            saved.restore(saved.header["runs"].index(kept.run_id), run_state, mine)
    return cohort.begun


class Saved(NamedTuple):
    """A checkpoint that was read, with the histories that its states have shared so far.

    `content` is the mapped file, `arrays` are those of the runs that were asked for, and `started`
    are the numbers of those that have a state.
    """

    content: mmap.mmap
    header: dict[str, Any]
    arrays: Unpacked
    started: set[int]
    histories: dict[str, Any]

    @staticmethod
    def read(where: StorePath, run_ids: Collection[str] | None = None) -> "Saved | None":
        """Read the states of these runs (default: all) from a checkpoint.

        None if it is missing, is damaged where they are, or was written by other code.
        """
        stored, packings = dict[str, Array](), dict[str, Any]()
        try:
            content = _mapped(where)
            header, index = read_arrays(content, more=True)
            if header["code"] != code_hash():
                return None
            shared = header["shared"]
            asked = {
                k for k, run_id in enumerate(header["runs"]) if run_ids is None or run_id in run_ids
            }
            names = [name for name in shared if _run_of(name) in asked]
            for k in sorted(asked | {_run_of(shared[name]) for name in names}):
                lo, hi = index["places"][k : k + 2].tolist()
                of_run, arrays = read_arrays(memoryview(content)[lo:hi])
                stored |= arrays
                packings |= of_run["packed"]
                forget_pages(content)
        except (FileNotFoundError, ValueError):
            return None
        unpacked = Unpacked(stored, packings, {name: shared[name] for name in names})
        started = {_run_of(name) for name in unpacked if ".state." in name}
        return Saved(content, header, unpacked, started, {})

    def restore(self, k: int, run_state: RunState, points: Array | None = None) -> None:
        """Load run k into a new run: with the whole curve, or with the marked `points` of it."""
        arrays, started = self.arrays, k in self.started
        if not run_state.states and started:
            return  # the run could start when the checkpoint was written, but not now
        for name in KEPT:
            setattr(run_state, name, self.header["progress"][k][name])
        run_state.totals[:] = arrays[f"{k}.totals"]
        curve = arrays[f"{k}.curve"]
        if points is not None:
            run_state.at = int(points[: run_state.at].sum())
            curve = curve[points]
        run_state.curve[:] = curve
        if run_state.measurement is not None:
            of_run = f"{k}.measured."
            mine = [name for name in arrays if name.startswith(of_run)]
            run_state.measurement.restore({n.removeprefix(of_run): arrays[n] for n in mine})
        if run_state.predictions.size:
            run_state.predictions[:] = arrays[f"{k}.predictions"]
        if not started:
            run_state.states = []  # the run could not start when the checkpoint was written
            return
        grows = run_state.run.learner_class.grows
        for c, prefix in enumerate(_prefixes(k, run_state)):
            state = run_state.states[c] = restored(run_state.states[c], arrays, grows, prefix)
            if "history" in state._fields:  # states that shared one history share it again
                name = f"{prefix}history.n"
                first = self.header["shared"].get(name, name)
                history = self.histories.setdefault(first, state.history)
                run_state.states[c] = state._replace(history=history)
        forget_pages(self.content)


def _run_of(name: str) -> int:
    """The number of the run to which an array of this name belongs."""
    return int(name.partition(".")[0])


def _prefixes(k: int, run_state: RunState) -> list[str]:
    """What the names of the arrays of run k's states begin with."""
    if len(run_state.states) == 1:
        return [f"{k}.state."]
    return [f"{k}.state.{c}." for c in range(len(run_state.states))]


def _mapped(where: StorePath) -> mmap.mmap:
    """A file's bytes, of which only those that are used are read."""
    with where.local() as path, path.open("rb") as handle:
        return mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)


def header_of(where: StorePath) -> dict[str, Any]:
    """A checkpoint's header; empty if it is missing or cannot be read."""
    try:
        return read_header(_mapped(where))[0]
    except (FileNotFoundError, ValueError):
        return {}


def remove_finished(store: AnyPath, finished: Callable[[], set[str]]) -> None:
    """Remove the checkpoints all of whose runs are in `finished()`, as after a cohort was split.

    Those from which longer runs go on stay, unless other code has written them.
    """
    left = [one for one in checkpoints(store) if not one.ended or one.code != code_hash()]
    done = finished() if left else set()
    for one in left:
        if done.issuperset(one.runs):
            one.path.remove()


def remove_kept(store: AnyPath, run_ids: Set[str]) -> None:
    """Remove the checkpoints from which longer runs have gone on: those of only these runs."""
    for one in checkpoints(store):
        if one.ended and run_ids >= set(one.runs):
            one.path.remove()


def unfinished(store: AnyPath) -> list[tuple[str, ...]]:
    """The run_ids of each cohort that has a checkpoint written by this version of the code."""
    return [tuple(one.runs) for one in checkpoints(store) if one.code == code_hash()]


def kept_states(store: AnyPath) -> dict[str, Kept]:
    """By run_id, the states that ended runs have left for longer ones.

    A failed run leaves none: the longer run may do better.
    """
    return {
        run_id: Kept(one.rounds, one.path.name.removesuffix(".koco"), run_id)
        for one in checkpoints(store)
        if one.ended and one.code == code_hash()
        for run_id, status in zip(one.runs, one.statuses, strict=True)
        if status != "failed"
    }


class Checkpoint(NamedTuple):
    """What the header of a checkpoint says: the code that wrote it, the runs and their statuses,
    the rounds, and whether the cohort has ended and longer runs go on from there.
    """

    path: StorePath
    code: str
    runs: list[str]
    statuses: list[str]
    rounds: int
    ended: bool


def checkpoints(store: AnyPath) -> list[Checkpoint]:
    """The readable checkpoints of a store, of whatever code."""
    files = checkpoints_folder(store).files(".koco")
    headers = [(path, header_of(path)) for path in files]
    return [
        Checkpoint(
            path,
            header["code"],
            header["runs"],
            [progress["status"] for progress in header["progress"]],
            header["rounds"],
            header["ended"],
        )
        for path, header in headers
        if header.get("format") == FORMAT
    ]
