"""Removal of a dataset or a sweep.

Nothing is removed while a sweep runs on the store, or a nightly run of it.
"""

import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from flows.housekeeping.listing import files_of
from flows.runtime.processes import locked
from flows.sweeping.status import CLAIM, refuse_running
from flows.tables.sweep_runs import sweep_names, sweep_note
from flows.tables.tables import rows_of
from koco_stream.errors import WrongInput
from koco_stream.io.files import json_text
from koco_stream.io.paths import StorePath
from koco_stream.streams.manifest import dataset_path, load_manifest
from koco_stream.streams.shard_cache import copies_of, remove_copies
from storage.collecting import remove_dataset, remove_runs, result_bytes
from storage.nights import night_names, night_path
from storage.results import read_runs
from storage.store import existing_store, read_note

NIGHTLY = "nightly"  # name of the lock that nightly runs hold


@dataclass(frozen=True)
class Removal:
    """Something that can be removed, and what this frees.

    Attributes
    ----------
    store : StorePath
        The store.
    kind, name : str
        What is removed: the dataset or sweep of this name.
    files, n_bytes : int
        Files that go, and about how many bytes.
    runs, runs_kept : int
        Runs whose rows go, and those that stay because another sweep has them too.
    act : callable
        Removes it.
    """

    store: StorePath
    kind: str
    name: str
    files: int
    n_bytes: int
    act: Callable[[], None]
    runs: int = 0
    runs_kept: int = 0

    def do(self) -> None:
        """Remove it. Raises `WrongInput` if a sweep or a nightly run is under way on the store."""
        with _quiet(self.store):
            self.act()


def dataset_removal(store: str, name: str, force: bool = False) -> Removal:
    """The removal of a prepared dataset and of its copies in the cache folder.

    Raises `WrongInput` if there is none of that name, and unless `force` if a sweep uses it.
    """
    root = existing_store(store)
    manifest = load_manifest(root, name)
    if not force and (users := list(_users_of(root, name))):
        remedies = " and ".join(f"koco remove sweep {sweep}" for sweep, night in users if not night)
        told = ", ".join(f"{'the nights of ' * night}{sweep}" for sweep, night in users)
        raise WrongInput(
            f"dataset {name!r} is used by {told};"
            + (f" remove them first ({remedies}), or" if remedies else "")
            + " keep their results and remove only the dataset with --force; to repeat their"
            " runs, prepare it again"
        )
    sizes = dataset_path(root, name).sizes()
    copies = [path.stat().st_size for path in copies_of(manifest)]

    def act() -> None:
        remove_dataset(root, name)
        remove_copies(manifest)

    total = sum(sizes) + sum(copies)
    return Removal(root, "dataset", name, len(sizes) + len(copies), total, act)


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
    others = [sweep_note(root, other) for other in sweep_names(root) if other != name]
    kept = mine.intersection(*[{run_id for one in others for run_id in one["run_ids"]}])
    going = mine - kept
    own = files_of(root, name)
    results = list(result_bytes(root))
    whole = sum(1 for _, sizes in results if sizes and going.issuperset(sizes))
    n_bytes = sum(sizes[run_id] for _, sizes in results for run_id in going.intersection(sizes))
    n_bytes += sum(size for file in own for size in file.sizes())

    def act() -> None:
        left.write_text(json_text({**notes[0], "run_ids": sorted(mine)}) + "\n")
        note.remove()
        remove_runs(root, going)
        for file in (*own, left):
            file.remove()

    done = {row["run_id"] for row in rows_of(read_runs(root, ["run_id", "status"]))}
    return Removal(
        root,
        "sweep",
        name,
        whole + len(own),
        round(n_bytes),
        act,
        len(going & done),
        len(kept & done),
    )


@contextmanager
def _quiet(store: StorePath) -> Iterator[None]:
    """Context in which no sweep and no nightly run begins.

    Raises `WrongInput` if a sweep or a nightly run is under way.
    """
    refuse_running(store)
    with ExitStack() as stack:
        busy = f"a nightly run is under way on {store}; wait until it has ended, or stop it"
        stack.enter_context(locked(store, NIGHTLY, WrongInput(busy)))
        stack.enter_context(locked(store, CLAIM, "waiting for a sweep that begins"))
        refuse_running(store)  # one may have begun meanwhile
        yield


def _users_of(store: StorePath, dataset: str) -> Iterator[tuple[str, bool]]:
    """Yield the sweeps that use a dataset, and whether it is their nightly runs that do."""
    for name in sweep_names(store):
        if _uses(store, name, dataset):
            yield name, False
    for name in night_names(store):
        if _uses(night_path(store, name), name, dataset):
            yield name, True


def _uses(store: StorePath, sweep: str, dataset: str) -> bool:
    """Whether a run of a sweep has read a dataset, or one that is not done yet may read it."""
    note = sweep_note(store, sweep)
    mine = set(note["run_ids"])
    rows = rows_of(read_runs(store, ["run_id", "status", "dataset"]))
    read = {row["run_id"]: row["dataset"] for row in rows if row["run_id"] in mine}
    if dataset in read.values():
        return True
    named = {table["name"] for table in tomllib.loads(note["file"]).get("dataset", [])}
    # a generated dataset is called after its generator, and its parameters
    return len(read) < len(mine) and dataset.split(",")[0] in named
