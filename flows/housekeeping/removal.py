"""Removal of a dataset or a sweep.

Nothing is removed while a sweep runs on the store, or a nightly run of it.
"""

import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from flows.housekeeping.listing import bytes_of, files_of
from flows.runtime.processes import locked
from flows.sweeping.status import CLAIM, refuse_running
from flows.tables.sweep_runs import sweep_names, sweep_note
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import StorePath
from koco_stream.streams.manifest import dataset_path, load_manifest
from koco_stream.streams.shard_cache import copies_of, remove_copies
from storage.collecting import remove_dataset, remove_runs, result_bytes
from storage.nights import night_names, night_path
from storage.notes import read_note
from storage.results import among, finished_runs, read_runs
from storage.store import existing_store

NIGHTLY = "nightly"  # name of the lock that nightly runs hold


class Removal(NamedTuple):
    """Something that can be removed, and what this frees.

    Attributes
    ----------
    do : callable
        Removes it. Raises `WrongInput` if a sweep or a nightly run is under way on the store.
    files, n_bytes : int
        Files that go, and about how many bytes.
    runs, runs_kept : int
        Runs whose rows go, and those that stay because another sweep has them too.
    """

    do: Callable[[], None]
    files: int
    n_bytes: int
    runs: int = 0
    runs_kept: int = 0


def dataset_removal(store: str, name: str, force: bool = False) -> Removal:
    """The removal of a prepared dataset and of its copies in the cache folder.

    Raises `WrongInput` if there is none of that name, and unless `force` if a sweep uses it.
    """
    root = existing_store(store)
    manifest = load_manifest(root, name)
    if not force and (users := list(_users_of(root, name))):
        remedies = " and ".join(
            f"koco store remove sweep {sweep}" for sweep, night in users if not night
        )
        told = ", ".join(f"{'the nights of ' * night}{sweep}" for sweep, night in users)
        raise WrongInput(
            f"dataset {name!r} is used by {told};"
            + (f" remove them first ({remedies}), or" if remedies else "")
            + " keep their results and remove only the dataset with --force; to repeat their"
            " runs, prepare it again"
        )

    @_alone_on(root)
    def remove() -> None:
        remove_dataset(root, name)
        remove_copies(manifest)

    sizes = [
        *dataset_path(root, name).sizes(),
        *(one.stat().st_size for one in copies_of(manifest)),
    ]
    return Removal(remove, len(sizes), sum(sizes))


def sweep_removal(store: str, name: str) -> Removal:
    """The removal of a sweep: its entry, its report, and the rows of runs that no other sweep has.

    Its entry is renamed away first, so that the sweep is gone at once; an interrupted removal is
    completed by the next. Raises `WrongInput` if no sweep of that name has run.
    """
    root = existing_store(store)
    note, left = root / "sweeps" / f"{name}.json", root / "sweeps" / f"{name}.removed"
    entries = [file for file in (note, left) if "/" not in name and file.is_file()]
    if not entries:
        sweep_note(root, name)  # raises, and names the nearest
    notes = [read_note(file) for file in entries]
    mine = {run_id for one in notes for run_id in one["run_ids"]}
    others = (sweep_note(root, other)["run_ids"] for other in sweep_names(root) if other != name)
    kept = mine.intersection({run_id for run_ids in others for run_id in run_ids})
    going, done = mine - kept, finished_runs(root)
    own = files_of(root, name)

    @_alone_on(root)
    def remove() -> None:
        left.write_text(json_text({**notes[0], "run_ids": sorted(mine)}) + "\n")
        note.remove()
        remove_runs(root, going)
        for file in (*own, left):
            file.remove()

    results = [sizes for _, sizes in result_bytes(root)]
    whole = sum(1 for sizes in results if sizes and going.issuperset(sizes))
    n_bytes = bytes_of(results, going) + sum(size for file in own for size in file.sizes())
    return Removal(remove, whole + len(own), round(n_bytes), len(going & done), len(kept & done))


@contextmanager
def _alone_on(store: StorePath) -> Iterator[None]:
    """Context in which no sweep and no nightly run begins.

    Raises `WrongInput` if a sweep or a nightly run is under way.
    """
    refuse_running(store)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(store, NIGHTLY, None))
        except BlockingIOError:
            raise WrongInput(
                f"a nightly run is under way on {store}; wait until it has ended, or stop it"
            ) from None
        stack.enter_context(locked(store, CLAIM, "waiting for a sweep that begins"))
        refuse_running(store)  # one may have begun meanwhile
        yield


def _users_of(store: StorePath, dataset: str) -> Iterator[tuple[str, bool]]:
    """Yield the sweeps that use a dataset, and whether it is their nightly runs that do.

    A run of such a sweep has read it, or one that is not done yet may read it.
    """
    nights = [(night_path(store, name), name) for name in night_names(store)]
    for where, name in (*((store, name) for name in sweep_names(store)), *nights):
        note = sweep_note(where, name)
        runs = read_runs(where, ["run_id", "status", "dataset"])
        mine = runs.filter(among(runs, set(note["run_ids"])))
        named = {table["name"] for table in tomllib.loads(note["file"]).get("dataset", [])}
        # a generated dataset is called after its generator, and its parameters
        waits = mine.num_rows < len(note["run_ids"]) and dataset.split(",")[0] in named
        if waits or dataset in mine.column("dataset").to_pylist():
            yield name, where is not store
