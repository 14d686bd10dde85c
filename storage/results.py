"""Reading the result tables `runs` and `curves`.

Workers write result files; `storage.collecting` moves these into the files of the tables. What is
read is all of it, collected or not.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from koco_stream.engine.result_file import read_result, result_files_folder
from koco_stream.errors import StoreUnavailable, WrongInput
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.runs.schemas import CURVES, RUNS, Column, schema

ATTEMPTS = 20
FAILED = "failed"
T = TypeVar("T")
# runs, of which run_id and status are read, and how to get their curves
WithCurves = tuple[pa.Table, Callable[[], pa.Table]]


def table_files(store: AnyPath, table: str) -> list[StorePath]:
    """The Parquet files of `runs` or `curves`, in the order of their names."""
    return (store_path(store) / "results" / table).files(".parquet")


def result_files(store: AnyPath) -> list[StorePath]:
    """The result files that were not collected yet."""
    return result_files_folder(store).files(".parquet")


def finished_runs(store: AnyPath, but_failed: bool = False) -> set[str]:
    """The run_ids of all runs in the store.

    Those that failed are left out if they are to be tried again (`but_failed`).
    """
    runs = read_runs(store, ["run_id", "status"])
    return ids_of(without_failed(runs) if but_failed else runs)


def read_runs(store: AnyPath, names: Sequence[str] | None = None) -> pa.Table:
    """The `runs` table: one row a run.

    With `names` it has only these columns, `run_id` and `status` among them.
    """
    columns = RUNS if names is None else _named(names)
    read = [column.name for column in columns]
    tables = _each(store, lambda _, table: conformed(columns, table), read)
    # making arrays, as empty_table does, would import pandas: a third of a second
    none = pa.Table.from_batches([], schema(columns))
    return first_of_each(pa.concat_tables([none, *tables]))


def read_columns(store: AnyPath, names: Sequence[str]) -> pa.Table:
    """These columns of the collected runs, file after file: a run that two files have is there
    twice.
    """
    columns = _named(names)
    tables = existing(
        table_files(store, "runs"), lambda file: conformed(columns, _read(file, names))
    )
    return pa.concat_tables([schema(columns).empty_table(), *tables])


def read_curves(store: AnyPath, run_ids: Sequence[str] | None = None) -> pa.Table:
    """The `curves` table.

    With `run_ids` it has only their curves, and takes little memory however many there are.
    """
    only = None if run_ids is None else pc.field("run_id").isin(pa.array(run_ids, pa.string()))

    def curves(file: StorePath, table: pa.Table) -> WithCurves:
        if only is not None:
            table = table.filter(only)
        if "curve" in table.column_names:
            return table, partial(curves_of, table)
        return with_curves(store, file, table, only)

    return pa.concat_tables(curves_once(_each(store, curves, ["run_id", "status"])))


def file_name(runs: pa.Table) -> str:
    """The name of the files of these runs: a hash of their run_ids and of which have failed."""
    ids = runs.column("run_id").to_pylist()
    failed = only_failed(runs).column("run_id").to_pylist()
    return f"{hashlib.sha256(''.join([*ids, *failed]).encode()).hexdigest()[:32]}.parquet"


def _named(names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(column for column in RUNS if column.name in names)


def _each(
    store: AnyPath, read: Callable[[StorePath, pa.Table], T], columns: Sequence[str]
) -> list[T]:
    """What `read` gives for each file of runs, of which these columns are read, then for each
    result file that is whole.

    Another process may be collecting. Result files are therefore listed first, so that a run is
    seen in one or the other; and when a file has gone in between, all is read again.
    """
    for attempt in range(ATTEMPTS):
        uncollected = result_files(store)
        try:
            found = [read(file, _read(file, columns)) for file in table_files(store, "runs")]
            for file in uncollected:
                if (table := read_result(file)) is not None:
                    found.append(read(file, table))
            return found
        except FileNotFoundError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError


def _read(file: StorePath, names: Sequence[str]) -> pa.Table:
    """These columns of a file; all it has, if an older version did not write one of them.

    Raises `WrongInput` for a damaged file.
    """
    try:
        try:
            return file.read_table(list(names))
        except pa.ArrowInvalid:
            return file.read_table()
    except (FileNotFoundError, StoreUnavailable):
        raise
    except (pa.ArrowException, OSError) as error:
        raise WrongInput(
            f"{file} cannot be read ({error}); remove it, and its runs will be run again by their"
            " sweeps"
        ) from error


# What collecting needs too.


def existing(files: Iterable[StorePath], read: Callable[[StorePath], T]) -> list[T]:
    """What `read` gives for the files that are still there.

    A result file that has gone is in the tables.
    """
    found = []
    for file in files:
        try:
            found.append(read(file))
        except FileNotFoundError:
            continue
    return found


def conformed(columns: tuple[Column, ...], table: pa.Table) -> pa.Table:
    """The table with these columns, in their types of now.

    Those that an older version did not write are null.
    """
    for column in columns:
        if column.name not in table.column_names:
            table = table.append_column(column.name, pa.nulls(table.num_rows, column.type))
    return table.select([column.name for column in columns]).cast(schema(columns))


def ids_of(table: pa.Table) -> set[str]:
    """The run_ids of a table."""
    return set(table.column("run_id").to_pylist())


def only_failed(runs: pa.Table) -> pa.Table:
    """The runs that failed."""
    return runs.filter(pc.equal(runs.column("status"), FAILED))


def without_failed(runs: pa.Table) -> pa.Table:
    """The runs that did not fail."""
    return runs.filter(pc.not_equal(runs.column("status"), FAILED))


def among(table: pa.Table, run_ids: set[str]) -> pa.ChunkedArray:
    """Which rows are of these runs."""
    return pc.is_in(table.column("run_id"), pa.array(sorted(run_ids), pa.string()))


def first_of_each(table: pa.Table) -> pa.Table:
    """Each run once: the first row that did not fail, or the first."""
    if pc.count_distinct(table.column("run_id")).as_py() == table.num_rows:
        return table
    ids, statuses = table.column("run_id").to_pylist(), table.column("status").to_pylist()
    chosen: dict[str, int] = {}
    for row in sorted(range(len(ids)), key=lambda row: (statuses[row] == FAILED, row)):
        chosen.setdefault(ids[row], row)
    return table.take(sorted(chosen.values()))


def with_curves(
    store: AnyPath, file: StorePath, runs: pa.Table, only: pc.Expression | None = None
) -> WithCurves:
    """The runs of a collected file and their curves, those that are asked for.

    There are none of either if another collector took the curves for those of a cut: the runs are
    then in its file too. Raises `FileNotFoundError` if the file itself has gone.
    """
    none = schema(CURVES).empty_table
    if only is not None and not runs.num_rows:
        return runs, none
    path = store_path(store) / "results" / "curves" / file.name
    try:
        curves = conformed(CURVES, path.read_table(only=only))
    except FileNotFoundError:
        if not file.is_file():
            raise
        return runs.slice(0, 0), none
    return runs, lambda: curves


def curves_once(tables: list[WithCurves]) -> Iterator[pa.Table]:
    """The curves of all tables, one after the other, each run's from the row that `first_of_each`
    takes: the first that did not fail, or the first.
    """
    yield schema(CURVES).empty_table()
    ended = [(ids_of(without_failed(runs)), curves) for runs, curves in tables]
    failed = [(ids_of(only_failed(runs)), curves) for runs, curves in tables]
    seen: set[str] = set()
    for ids, curves in (*ended, *failed):
        if ids - seen:
            table = curves()
            mask = among(table, ids - seen)
            yield table if pc.all(mask).as_py() else table.filter(mask)
            seen |= ids


def curves_of(results: pa.Table) -> pa.Table:
    """The nested curves of a result file as rows of the `curves` table."""
    nested = results.column("curve").combine_chunks()
    which = pc.list_parent_indices(nested)
    points = pc.list_flatten(nested)
    fields = pa.chunked_array([points]) if isinstance(points, pa.Array) else points
    flat = pa.Table.from_struct_array(fields)
    flat = flat.add_column(0, "run_id", results.column("run_id").combine_chunks().take(which))
    return conformed(CURVES, flat)


def write_tables(tables: Iterable[pa.Table], file: StorePath) -> None:
    """The tables, which have one schema, as one file. Only one of them is held at a time."""
    each = iter(tables)
    first = next(each)
    with (
        file.written() as temporary,
        pq.ParquetWriter(
            temporary, first.schema, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        if first.num_rows:
            writer.write_table(first)
        for table in each:
            writer.write_table(table)
