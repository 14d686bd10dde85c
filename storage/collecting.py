"""Collection of result files into a few Parquet files of the tables, and removal from a store."""

from collections import Counter
from collections.abc import Iterator, Set
from contextlib import suppress
from functools import partial
from itertools import accumulate

import pyarrow as pa

from koco_stream.engine.checkpoint import checkpoints, checkpoints_folder
from koco_stream.engine.result_file import read_result, result_files_folder
from koco_stream.errors import Damaged, WrongInput
from koco_stream.io.files import remove_unfinished, sync
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.io.table_file import check, groups_of, opened, read_table, write_tables
from koco_stream.runs.row_checks import OPEN
from koco_stream.runs.schemas import RUNS, schema
from koco_stream.streams.manifest import dataset_path, datasets_path
from storage.results import (
    KEYS,
    OF_COHORTS,
    WithCurves,
    among,
    curves_of,
    curves_once,
    file_name,
    first_of_each,
    ids_of,
    ranks_of,
    repeated,
    result_files,
    rows_in,
    table_files,
    with_curves,
    with_status,
    without,
)
from storage.store import LOCK, staging_folder

MANY_FILES = 32  # files of a table; with more, small ones are merged when results are collected
FULL_FILE = 1_000_000  # runs in a file; files are merged up to this size
LEFT_SECONDS = 3600.0  # age from which an unfinished file counts as abandoned
ORDER = ("dataset", "learner", "params", "order_seed", "learner_seed", "run_id")  # sort keys


def collect(store: AnyPath) -> int:
    """Move all result files into one new file of each table; merge small files if there are many.

    Returns the number of runs added or replaced. Curves are written first, then runs, and only then
    are old files deleted: an interruption loses no run. An object store has no lock: a run may be
    in two files of a table until the next collection.
    """
    runs, curves = (
        [file.name for file in table_files(store, table)] for table in ("runs", "curves")
    )
    if not result_files(store) and len(runs) < 2 and runs == curves:
        return 0
    with (store_path(store) / LOCK).locked():
        # without a lock (object store), another process may delete a file meanwhile
        return repeated(partial(_collect, store))


def remove_damaged(store: AnyPath) -> Iterator[StorePath]:
    """Yields the files; their runs are then not in the store."""
    for file in result_files(store):
        try:
            with suppress(FileNotFoundError):  # another process has collected it
                read_result(file)
        except Damaged:
            file.remove()
            yield file


def remove_left(store: AnyPath) -> None:
    """Only a store in a folder can have unfinished files of terminated processes."""
    root = store_path(store)
    tables = [root / "results" / table for table in ("runs", "curves")]
    for folder in (result_files_folder(root), checkpoints_folder(root), *tables):
        if folder.is_local:
            remove_unfinished(folder.path, LEFT_SECONDS)


def _collect(store: AnyPath) -> int:
    new = []
    for file in result_files(store):
        with suppress(FileNotFoundError):  # another process has collected it
            # without the curves, which are most of it
            new.append((file, read_result(file).drop_columns(["curve"])))
    # listed after the result files were read, so that runs of deleted result files are included
    files = table_files(store, "runs")
    there = [rows_in(file, KEYS) for file in files]
    ids = {file: ids_of(table) for file, table in zip(files, there, strict=True)}
    known = set().union(*ids.values())
    before = dict(ranks_of(with_status(table, OPEN) for table in there))
    later = ranks_of(runs.filter(among(runs, before.keys())) for _, runs in new)
    again = {run_id for run_id, rank in later if rank > before[run_id]}
    fresh = [(file, without(runs, known - again)) for file, runs in new]
    done = set().union(*(ids_of(runs) for _, runs in fresh))
    absorbed = _files_to_merge(ids, again)
    if done or absorbed:
        _replace(store, fresh, absorbed, done)
    _remove_left_curves(store, known | done)
    for file, _ in new:
        file.remove()
    return len(done)


def _remove_left_curves(store: AnyPath, known: Set[str]) -> None:
    """Remove curves that an interruption left, if their runs are all `known`."""
    whole = {file.name for file in table_files(store, "runs")}
    for file in table_files(store, "curves"):
        with suppress(FileNotFoundError):
            if file.name not in whole and ids_of(rows_in(file, KEYS[:1])) <= known:
                file.remove()


def _replace(
    store: AnyPath,
    fresh: list[tuple[StorePath, pa.Table]],
    absorbed: list[StorePath],
    done: Set[str],
) -> None:
    results = store_path(store) / "results"
    kept = [(file, without(rows_in(file, RUNS), done)) for file in absorbed]
    curves: list[WithCurves] = [(runs, partial(_curves_in, file)) for file, runs in fresh]
    curves += [with_curves(store, file, runs) for file, runs in kept]
    tables = [schema(RUNS).empty_table(), *(runs for _, runs in (*fresh, *kept))]
    runs = first_of_each(pa.concat_tables(tables))
    runs = runs.sort_by([(name, "ascending") for name in ORDER])
    name = file_name(runs)
    if runs.num_rows:
        write_tables(curves_once(curves), results / "curves" / name)
        write_tables([runs], results / "runs" / name)
    for table in ("runs", "curves"):
        for file in absorbed:
            if file.name != name:
                (results / table / file.name).remove()


def _files_to_merge(ids: dict[StorePath, set[str]], again: set[str]) -> list[StorePath]:
    """Runs files with runs that were repeated (`again`) or that are also in another file."""
    times = Counter(run_id for of_file in ids.values() for run_id in of_file)
    touched = again | {run_id for run_id, n in times.items() if n > 1}
    chosen = {file for file, of_file in ids.items() if not touched.isdisjoint(of_file)}
    if len(ids) > MANY_FILES:
        by_size = sorted(ids, key=lambda file: len(ids[file]))
        totals = accumulate(len(ids[file]) for file in by_size)
        chosen |= {file for file, n in zip(by_size, totals, strict=True) if n <= FULL_FILE}
    return [file for file in ids if file in chosen]


def _curves_in(file: StorePath) -> pa.Table:
    return curves_of(read_table(file, ["run_id", "curve"]))


def remove_dataset(store: AnyPath, name: str) -> None:
    root = store_path(store)
    folder = dataset_path(store, name)
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
    """Remove runs from all tables, and the checkpoints of cohorts of only these runs."""
    collect(store)
    with (store_path(store) / LOCK).locked():
        repeated(partial(_remove_runs, store, run_ids))
        for table in OF_COHORTS:
            for file in table_files(store, table):
                _remove_from_cohort(file, run_ids)
    for path, header in checkpoints(store).items():
        if run_ids >= set(header["runs"]):
            path.remove()


def result_bytes(store: AnyPath) -> Iterator[tuple[StorePath, dict[str, float]]]:
    """Each run of a file has an equal share of its bytes."""
    curves = store_path(store) / "results" / "curves"
    runs = {file: ids_of(rows_in(file, KEYS[:1])) for file in table_files(store, "runs")}
    runs |= {curves / file.name: ids for file, ids in runs.items()}
    runs |= {file: ids_of(read_result(file)) for file in result_files(store)}
    for name in OF_COHORTS:
        runs |= {
            file: {group.first for group in groups_of(file)} for file in table_files(store, name)
        }
    for file, ids in runs.items():
        yield file, dict.fromkeys(ids, sum(file.sizes()) / max(len(ids), 1))


def _remove_runs(store: AnyPath, run_ids: Set[str]) -> None:
    """The caller holds the store's lock."""
    known = set(run_ids)
    for file in table_files(store, "runs"):
        ids = ids_of(rows_in(file, KEYS[:1]))
        known |= ids
        if not run_ids.isdisjoint(ids):
            if not (store_path(store) / "results" / "curves" / file.name).is_file():
                raise WrongInput(
                    f"{file}: the curves of its runs are missing; see koco store verify"
                )
            _replace(store, [], [file], run_ids)
    _remove_left_curves(store, known)


def _remove_from_cohort(file: StorePath, run_ids: Set[str]) -> None:
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
