"""Removal of datasets and of runs from a store, and what they take there.

A dataset in a folder is renamed away before its files are deleted; in an object store its manifest
is deleted first. It is there as a whole or not at all.

The rows of runs are removed from the tables file by file: a new file with the rows that stay is
written before the old one is deleted. An interruption therefore loses no other run, and the next
call completes the work.
"""

from collections.abc import Iterator, Set
from functools import partial

from koco_stream.engine.checkpoint import checkpoints
from koco_stream.engine.result_file import read_result
from koco_stream.errors import WrongInput
from koco_stream.io.files import sync
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.io.table_file import check, groups_of, opened, write_tables
from koco_stream.runs.schemas import RUNS
from koco_stream.streams.manifest import dataset_path, datasets_path
from storage.collecting import collect
from storage.results import (
    KEYS,
    OF_COHORTS,
    file_name,
    ids_of,
    repeated,
    result_files,
    rows_in,
    table_files,
    with_curves,
    without,
)
from storage.store import LOCK, staging_folder


def remove_dataset(store: AnyPath, name: str) -> None:
    """Remove a prepared dataset. Raises `WrongInput` if the store has it from another store."""
    root, folder = store_path(store), dataset_path(store, name)
    if datasets_path(root) != root / "datasets":
        raise WrongInput(f"{root} uses the datasets of {datasets_path(root)}; remove {name} there")
    with (root / LOCK).locked():
        if folder.is_local:
            with staging_folder(root.path) as staging:
                folder.path.rename(staging / "removed")
                sync(folder.path.parent)
        else:
            (folder / "manifest.json").remove()
            folder.remove_tree()


def remove_runs(store: AnyPath, run_ids: Set[str]) -> None:
    """Remove the rows of runs from all tables, and the checkpoints of cohorts of only these runs.

    No sweep may be running on the store: it would compute them again. Raises `WrongInput` for a
    file of runs whose curves are missing.
    """
    collect(store)
    with (store_path(store) / LOCK).locked():
        repeated(partial(_remove_runs, store, run_ids))
        for table in OF_COHORTS:
            for file in table_files(store, table):
                _remove_from_cohort(file, run_ids)
    for one in checkpoints(store):
        if run_ids >= set(one.runs):
            one.path.remove()


def result_bytes(store: AnyPath) -> Iterator[tuple[StorePath, dict[str, float]]]:
    """Yield each file of results, with about how many bytes of it belong to each of its runs.

    The runs of a file have equal shares, except in the tables of windows and predictions.
    """
    curves = store_path(store) / "results" / "curves"
    for file in table_files(store, "runs"):
        ids = ids_of(rows_in(file, KEYS[:1]))
        for each in (file, curves / file.name):
            yield each, _shared(sum(each.sizes()), ids)
    for file in result_files(store):
        yield file, _shared(sum(file.sizes()), ids_of(read_result(file)))
    for name in OF_COHORTS:
        for file in table_files(store, name):
            sizes: dict[str, float] = {}
            for group in groups_of(file):
                sizes[group.first] = sizes.get(group.first, 0.0) + group.n_bytes
            yield file, sizes


def _shared(n_bytes: int, run_ids: Set[str]) -> dict[str, float]:
    return {run_id: n_bytes / len(run_ids) for run_id in run_ids}


def _remove_runs(store: AnyPath, run_ids: Set[str]) -> None:
    """Remove runs from the tables `runs` and `curves`. The caller holds the store's lock."""
    results = store_path(store) / "results"
    for file in table_files(store, "runs"):
        whole = rows_in(file, RUNS)
        if run_ids.isdisjoint(ids_of(whole)):
            continue
        runs, curves = with_curves(store, file, whole)
        if runs.num_rows < whole.num_rows:
            raise WrongInput(f"{file}: the curves of its runs are missing; see koco verify")
        kept = without(runs, run_ids)
        if kept.num_rows:
            name = file_name(kept)
            write_tables([without(curves(), run_ids)], results / "curves" / name)
            write_tables([kept], results / "runs" / name)
        file.remove()
        (results / "curves" / file.name).remove()
    files = table_files(store, "runs")
    known = set().union(*(ids_of(rows_in(file, KEYS[:1])) for file in files))
    names = {file.name for file in files}
    for file in table_files(store, "curves"):  # left by an interruption
        if file.name not in names and ids_of(rows_in(file, KEYS[:1])) <= known | run_ids:
            file.remove()


def _remove_from_cohort(file: StorePath, run_ids: Set[str]) -> None:
    """Remove runs from a file that has row groups for each run; the others are copied."""
    groups = groups_of(file)
    kept = [number for number, group in enumerate(groups) if group.first not in run_ids]
    if not kept:
        file.remove()
    elif len(kept) < len(groups):
        with file.local() as path:  # an object cannot be read and replaced at once
            check(store_path(path))
            opened(
                store_path(path), lambda rows, _: write_tables(map(rows.read_row_group, kept), file)
            )
