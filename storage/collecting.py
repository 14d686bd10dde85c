"""Collecting: result files are moved into few files of the tables `runs` and `curves`."""

from collections import Counter
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.engine.checkpoint import checkpoints_folder
from koco_stream.engine.result_file import read_result, result_files_folder
from koco_stream.io.files import remove_unfinished
from koco_stream.io.paths import AnyPath, LocalPath, StorePath, store_path
from koco_stream.runs.schemas import RUNS, schema
from storage.results import (
    ATTEMPTS,
    WithCurves,
    among,
    conformed,
    curves_of,
    curves_once,
    existing,
    file_name,
    first_of_each,
    ids_of,
    only_failed,
    result_files,
    table_files,
    with_curves,
    without_failed,
    write_tables,
)
from storage.store import LOCK

MANY_FILES = 32  # of a table: more become one when results are collected
FULL_FILE = 1_000_000  # runs: what is as large is left alone
LEFT_SECONDS = 3600.0  # nobody writes one file for so long
ORDER = ("dataset", "learner", "params", "order_seed", "learner_seed", "run_id")  # of the rows


def collect(store: AnyPath) -> int:
    """Move all result files into one more file of each table. When there are many files, the small
    ones become one.

    Returns
    -------
    How many runs were added or replaced.

    Notes
    -----
    A run that failed is replaced by the same run done again; otherwise what is there stays. First
    the new curves' file appears, then its runs' file, then what they replace goes: wherever this is
    cut no run is lost, and the next call finishes it without doubling one. A curves' file without
    its runs' file is what a cut left; it goes once another file has its runs.

    In a folder a lock lets only one process do so at a time. An object store has no lock, and
    several may: nothing is lost then either. A file goes only after its runs are in another runs'
    file, whose curves are complete. Collectors that saw the same files write the same, by name and
    content. If they saw others, a run may be in two files of a table: `read_runs` and
    `read_curves` count it once, the next collector removes one, and who reads the files directly
    meanwhile takes each run_id once.
    """
    runs, curves = (
        [file.name for file in table_files(store, table)] for table in ("runs", "curves")
    )
    if not result_files(store) and len(runs) < 2 and runs == curves:
        return 0
    return _rewritten(store, everything=False)


def compact(store: AnyPath) -> tuple[int, int]:
    """Collect, and make one file of all that are not large already.

    A reader sees each run at any moment: see `collect`. Returns how many files of runs there were
    and are.
    """
    before = len(table_files(store, "runs")) + len(result_files(store))
    _rewritten(store, everything=True)
    return before, len(table_files(store, "runs"))


def remove_left(store: AnyPath) -> None:
    """Remove half-written files that killed processes left where results and checkpoints are.

    An object store has none.
    """
    root = store_path(store)
    tables = root / "results" / "runs", root / "results" / "curves"
    for folder in (result_files_folder(root), checkpoints_folder(root), *tables):
        if isinstance(folder, LocalPath):
            remove_unfinished(folder.path, LEFT_SECONDS)


def _rewritten(store: AnyPath, everything: bool) -> int:
    """`_collect` under the lock; where there is none, again if another collector took a file
    away.
    """
    for _ in range(ATTEMPTS - 1):
        with (store_path(store) / LOCK).locked(), suppress(FileNotFoundError):
            return _collect(store, everything)
    with (store_path(store) / LOCK).locked():
        return _collect(store, everything)


def _collect(store: AnyPath, everything: bool) -> int:
    found = existing(result_files(store), _runs_in)
    new = [(file, runs) for file, runs in found if runs is not None]
    # after the result files were read: what another collector has taken away by now is in it
    files = table_files(store, "runs")
    there = [file.read_table(["run_id", "status"]) for file in files]
    ids = [ids_of(table) for table in there]
    known = set().union(*ids)
    failed = set().union(*(ids_of(only_failed(table)) for table in there))
    again = failed & set().union(*(ids_of(without_failed(runs)) for _, runs in new))
    fresh = [(file, _without(runs, known - again)) for file, runs in new]
    done = set().union(*(ids_of(runs) for _, runs in fresh))
    absorbed = [files[number] for number in _absorbed(ids, again, everything)]
    if done or absorbed:
        _replace(store, fresh, absorbed, done)
    known |= done
    whole = {file.name for file in table_files(store, "runs")}
    for file in table_files(store, "curves"):
        if file.name not in whole and set().union(*existing([file], _ids_in)) <= known:
            file.remove()
    for file, _ in new:
        file.remove()
    return len(done)


def _replace(
    store: AnyPath,
    fresh: list[tuple[StorePath, pa.Table]],
    absorbed: list[StorePath],
    done: set[str],
) -> None:
    """Write a file of each table with the `fresh` runs of result files and those of the `absorbed`
    files that were not `done` again. Then the absorbed files go.
    """
    results = store_path(store) / "results"
    kept = [(file, _without(conformed(RUNS, file.read_table()), done)) for file in absorbed]
    curves: list[WithCurves] = [(runs, partial(_curves_in, file)) for file, runs in fresh]
    curves += [with_curves(store, file, runs) for file, runs in kept]
    tables = [schema(RUNS).empty_table(), *(runs for _, runs in (*fresh, *kept))]
    runs = first_of_each(pa.concat_tables(tables))
    runs = runs.sort_by([(name, "ascending") for name in ORDER])
    name = file_name(runs)
    write_tables(curves_once(curves), results / "curves" / name)
    write_tables([runs], results / "runs" / name)
    for table in ("runs", "curves"):
        for file in absorbed:
            if file.name != name:
                (results / table / file.name).remove()


def _absorbed(ids: list[set[str]], again: set[str], everything: bool) -> list[int]:
    """Which files, by number, are to become part of the new one, given their run_ids.

    They are those with runs that were done again or that another file has too; and when they are
    many, or `everything` is to be compacted, the smallest up to a full file.
    """
    times = Counter(run_id for file in ids for run_id in file)
    touched = again | {run_id for run_id, n in times.items() if n > 1}
    chosen = {number for number, file in enumerate(ids) if not touched.isdisjoint(file)}
    if len(ids) > MANY_FILES or (everything and len(ids) > 1):
        room = FULL_FILE
        for n_runs, number in sorted((len(file), number) for number, file in enumerate(ids)):
            room -= n_runs
            if room >= 0:
                chosen.add(number)
    return sorted(chosen)


def _runs_in(file: StorePath) -> tuple[StorePath, pa.Table | None]:
    """A result file and its runs, without their curves, which are most of it; None if it is
    damaged.
    """
    table = read_result(file)
    return file, None if table is None else conformed(RUNS, table)


def _ids_in(file: StorePath) -> set[str]:
    return ids_of(file.read_table(["run_id"]))


def _curves_in(file: StorePath) -> pa.Table:
    return curves_of(file.read_table(["run_id", "curve"]))


def _without(table: pa.Table, run_ids: set[str]) -> pa.Table:
    return table.filter(pc.invert(among(table, run_ids)))
