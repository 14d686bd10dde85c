"""The result tables: parts in, `runs` and `curves` out."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from koco_stream.engine.checkpoint import checkpoints_folder
from koco_stream.engine.result_file import read_result, result_files_folder
from koco_stream.errors import StoreUnavailable, WrongInput
from koco_stream.io.files import remove_unfinished
from koco_stream.io.paths import AnyPath, LocalPath, StorePath, store_path
from koco_stream.runs.schemas import CURVES, RUNS, Column, schema
from storage.store import LOCK

ATTEMPTS = 20
MANY_FILES = 32  # of a table: more become one when results are collected
FULL_FILE = 1_000_000  # runs: what is as large is left alone
LEFT_SECONDS = 3600.0  # nobody writes one file for so long
FAILED = "failed"
_LISTED = pa.schema([("run_id", pa.string()), ("status", pa.string()), ("file", pa.int64())])
T = TypeVar("T")
WithCurves = tuple[
    pa.Table, Callable[[], pa.Table]
]  # runs, of which run_id and status are read, and how to get their curves


def table_files(store: AnyPath, table: str) -> list[StorePath]:
    """The Parquet files of `runs` or `curves`, in the order of their names."""
    return (store_path(store) / "results" / table).files(".parquet")


def part_files(store: AnyPath) -> list[StorePath]:
    """Parts that were not collected yet."""
    return result_files_folder(store).files(".parquet")


def finished_runs(store: AnyPath, but_failed: bool = False) -> set[str]:
    """The run_ids of all runs in the store, collected or not; without those that failed, if these
    are to be tried again.
    """

    def ids(_: StorePath, table: pa.Table) -> set[str]:
        return _ids(
            table.filter(pc.not_equal(table.column("status"), FAILED)) if but_failed else table
        )

    return set().union(*_each(store, ids, ["run_id", "status"]))


def read_runs(store: AnyPath, names: Sequence[str] | None = None) -> pa.Table:
    """The `runs` table: one row a run, those of finished cohorts of a running sweep included. With
    `names` only these columns, `run_id` and `status` among them.
    """
    columns = RUNS if names is None else _named(names)
    tables = _each(store, lambda _, table: _as(columns, table), [column.name for column in columns])
    none = pa.Table.from_batches(
        [], schema(columns)
    )  # making arrays, as empty_table does, would import pandas: a third of a second
    return _first_of_each(pa.concat_tables([none, *tables]))


def read_columns(store: AnyPath, names: Sequence[str]) -> pa.Table:
    """These columns of the collected runs, file after file: a run that two files have is there
    twice.
    """
    columns = _named(names)
    tables = _there(table_files(store, "runs"), lambda file: _as(columns, _read(file, names)))
    return pa.concat_tables([schema(columns).empty_table(), *tables])


def _named(names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(column for column in RUNS if column.name in names)


def _read(file: StorePath, names: Sequence[str]) -> pa.Table:
    """These columns of a file; all it has, if an older version did not write one of them. Raises
    `WrongInput` for a damaged file.
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


def read_curves(store: AnyPath, run_ids: Sequence[str] | None = None) -> pa.Table:
    """The `curves` table, those of finished cohorts of a running sweep included; with `run_ids`
    only theirs, which takes little memory however many there are.
    """
    only = None if run_ids is None else pc.field("run_id").isin(pa.array(run_ids, pa.string()))

    def curves(file: StorePath, table: pa.Table) -> WithCurves:
        if only is not None:
            table = table.filter(only)
        return (
            (table, partial(curves_of, table))
            if "curve" in table.column_names
            else _with_curves(store, file, table, only)
        )

    return pa.concat_tables(_curves_once(_each(store, curves, ["run_id", "status"])))


def _each(
    store: AnyPath, read: Callable[[StorePath, pa.Table], T], columns: Sequence[str]
) -> list[T]:
    """What `read` gives for each file of runs, of which these columns are read, then for each part
    that is whole.

    Another process may be collecting. Parts are therefore listed first, so that a run is seen in
    one or the other; and when a file has gone in between, all is read again.
    """
    for attempt in range(ATTEMPTS):
        parts = part_files(store)
        try:
            collected = [read(file, _read(file, columns)) for file in table_files(store, "runs")]
            return [
                *collected,
                *(read(file, table) for file in parts if (table := read_result(file)) is not None),
            ]
        except FileNotFoundError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError


def collect(store: AnyPath) -> int:
    """Move all parts into one more file of each table; returns how many runs were added or
    replaced. When there are many files, the small ones become one.

    A run that failed is replaced by the same run done again; otherwise what is there stays. First
    the new curves' file appears, then its runs' file, then what they replace goes: wherever this is
    cut no run is lost, and the next call finishes it without doubling one. A curves' file without
    its runs' file is what a cut left; it goes once another file has its runs.

    In a folder a lock lets only one process do so at a time. An object store has no lock, and
    several may: nothing is lost then either. A part or a file goes only after its runs are in
    another runs' file, whose curves are complete. Collectors that saw the same files write the
    same, by name and content. If they saw others, a run may be in two files of a table: `read_runs`
    and `read_curves` count it once, the next collector removes one, and who reads the files
    directly meanwhile takes each run_id once.
    """
    runs, curves = (
        [file.name for file in table_files(store, table)] for table in ("runs", "curves")
    )
    if not part_files(store) and len(runs) < 2 and runs == curves:
        return 0
    return _rewritten(store, everything=False)


def remove_left(store: AnyPath) -> None:
    """Remove half-written files that killed processes left where results and checkpoints are. An
    object store has none.
    """
    root = store_path(store)
    for folder in (
        result_files_folder(root),
        checkpoints_folder(root),
        root / "results" / "runs",
        root / "results" / "curves",
    ):
        if isinstance(folder, LocalPath):
            remove_unfinished(folder.path, LEFT_SECONDS)


def compact(store: AnyPath) -> tuple[int, int]:
    """Collect, and make one file of all that are not large already; returns how many runs' files
    there were and are. A reader sees each run at any moment: see `collect`.
    """
    before = len(table_files(store, "runs")) + len(part_files(store))
    _rewritten(store, everything=True)
    return before, len(table_files(store, "runs"))


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
    parts = [found for found in _there(part_files(store), _runs_of_part) if found is not None]
    files = table_files(
        store, "runs"
    )  # after the parts were read: what another collector has taken away by now is in it
    listed = pa.concat_tables(
        [_LISTED.empty_table(), *(_listed(file, number) for number, file in enumerate(files))]
    )
    known, failed = _ids(listed), _ids(listed.filter(pc.equal(listed.column("status"), FAILED)))
    read = pa.concat_tables([schema(RUNS).empty_table(), *(runs for _, runs in parts)])
    again = failed & _ids(read.filter(pc.not_equal(read.column("status"), FAILED)))
    fresh = [(file, _without(runs, known - again)) for file, runs in parts]
    absorbed = [files[number] for number in _absorbed(listed, again, everything)]
    done = set().union(*(_ids(runs) for _, runs in fresh))
    if done or absorbed:
        results = store_path(store) / "results"
        kept = [(file, _without(_as(RUNS, file.read_table()), done)) for file in absorbed]
        curves: list[WithCurves] = [(runs, partial(_curves_of_part, file)) for file, runs in fresh]
        curves += [_with_curves(store, file, runs) for file, runs in kept]
        table = _first_of_each(
            pa.concat_tables([schema(RUNS).empty_table(), *(runs for _, runs in (*fresh, *kept))])
        )
        table = table.sort_by(
            [
                (name, "ascending")
                for name in ("dataset", "learner", "params", "order_seed", "learner_seed", "run_id")
            ]
        )
        name = file_name(table)
        _write(_curves_once(curves), results / "curves" / name)
        _write([table], results / "runs" / name)
        for table_name in ("runs", "curves"):
            for file in absorbed:
                if file.name != name:
                    (results / table_name / file.name).remove()
        known |= done
    whole = {file.name for file in table_files(store, "runs")}
    for file in table_files(store, "curves"):
        if file.name not in whole and set().union(*_there([file], _ids_of)) <= known:
            file.remove()
    for file, _ in parts:
        file.remove()
    return len(done)


def file_name(runs: pa.Table) -> str:
    """The name of the files of these runs: a hash of their run_ids and of which have failed."""
    ids = runs.column("run_id").to_pylist()
    failed = runs.filter(pc.equal(runs.column("status"), FAILED)).column("run_id").to_pylist()
    return f"{hashlib.sha256(''.join([*ids, *failed]).encode()).hexdigest()[:32]}.parquet"


def _absorbed(listed: pa.Table, again: set[str], everything: bool) -> list[int]:
    """Which files, by number, are to become part of the new one: those with runs that were done
    again or that another file has too; and when they are many, or `everything` is to be compacted,
    the smallest up to a full file.
    """
    numbers = listed.column("file").to_numpy()
    counts = Counter(numbers.tolist())
    doubled = listed.group_by("run_id").aggregate([("file", "count")])
    doubled = doubled.filter(pc.greater(doubled.column("file_count"), 1))
    touched = pa.array(sorted({*again, *doubled.column("run_id").to_pylist()}), pa.string())
    chosen = set(numbers[pc.is_in(listed.column("run_id"), touched).to_numpy()].tolist())
    if len(counts) > MANY_FILES or (everything and len(counts) > 1):
        room = FULL_FILE
        for number, n_rows in sorted(counts.items(), key=lambda item: (item[1], item[0])):
            room -= n_rows
            if room >= 0:
                chosen.add(number)
    return sorted(chosen)


def _listed(file: StorePath, number: int) -> pa.Table:
    table = file.read_table(["run_id", "status"])
    return table.append_column("file", pa.array([number] * table.num_rows, pa.int64())).cast(
        _LISTED
    )


def _with_curves(
    store: AnyPath, file: StorePath, runs: pa.Table, only: pc.Expression | None = None
) -> WithCurves:
    """The runs of a collected file and their curves, those that are asked for; none of either if
    another collector took the curves for those of a cut: the runs are then in its file too. Raises
    `FileNotFoundError` if the file itself has gone.
    """
    if only is not None and not runs.num_rows:
        return runs, schema(CURVES).empty_table
    try:
        curves = _as(
            CURVES, (store_path(store) / "results" / "curves" / file.name).read_table(only=only)
        )
    except FileNotFoundError:
        if not file.is_file():
            raise
        return runs.slice(0, 0), schema(CURVES).empty_table
    return runs, lambda: curves


def _curves_once(tables: list[WithCurves]) -> Iterator[pa.Table]:
    """The curves of all tables, one after the other, each run's from the row that `_first_of_each`
    takes: the first that did not fail, or the first.
    """
    failed = [_ids(runs.filter(pc.equal(runs.column("status"), FAILED))) for runs, _ in tables]
    yield schema(CURVES).empty_table()
    seen: set[str] = set()
    for (runs, curves), not_these in zip(tables, failed, strict=True):
        yield _only(curves(), _ids(runs) - not_these - seen)
        seen |= _ids(runs) - not_these
    for (_, curves), these in zip(tables, failed, strict=True):
        if these - seen:
            yield _only(curves(), these - seen)
            seen |= these


def _there(files: list[StorePath], read: Callable[[StorePath], T]) -> list[T]:
    """What `read` gives for the files that are still there: a part that has gone is in the
    tables.
    """
    found = []
    for file in files:
        try:
            found.append(read(file))
        except FileNotFoundError:
            continue
    return found


def _ids_of(file: StorePath) -> set[str]:
    return _ids(file.read_table(["run_id"]))


def _ids(table: pa.Table) -> set[str]:
    return set(table.column("run_id").to_pylist())


def _as(columns: tuple[Column, ...], table: pa.Table) -> pa.Table:
    """The table with these columns, as declared now: those that an older version did not write are
    null.
    """
    for column in columns:
        if column.name not in table.column_names:
            table = table.append_column(column.name, pa.nulls(table.num_rows, column.type))
    return table.select([c.name for c in columns]).cast(schema(columns))


def _runs_of_part(file: StorePath) -> tuple[StorePath, pa.Table] | None:
    """The part and its runs, without their curves, which are most of it; None if it is damaged."""
    part = read_result(file)
    return None if part is None else (file, _as(RUNS, part))


def _curves_of_part(file: StorePath) -> pa.Table:
    return curves_of(file.read_table(["run_id", "curve"]))


def curves_of(parts: pa.Table) -> pa.Table:
    """The nested curves of a part as rows of the `curves` table."""
    nested = parts.column("curve").combine_chunks()
    which = pc.list_parent_indices(nested)
    points = pc.list_flatten(nested)
    fields = pa.chunked_array([points]) if isinstance(points, pa.Array) else points
    flat = pa.Table.from_struct_array(fields)
    flat = flat.add_column(0, "run_id", parts.column("run_id").combine_chunks().take(which))
    return flat.select([c.name for c in CURVES]).cast(schema(CURVES))


def _write(tables: Iterable[pa.Table], file: StorePath) -> None:
    """The tables, which have one schema, as one file. Only one of them is held at a time."""
    with file.written() as temporary:
        each = iter(tables)
        first = next(each)
        with pq.ParquetWriter(
            temporary, first.schema, compression="zstd", write_page_checksum=True
        ) as writer:
            if first.num_rows:
                writer.write_table(first)
            for table in each:
                writer.write_table(table)


def _first_of_each(table: pa.Table) -> pa.Table:
    """Each run once: the first row that did not fail, or the first."""
    if pc.count_distinct(table.column("run_id")).as_py() == table.num_rows:
        return table
    ids, statuses = table.column("run_id").to_pylist(), table.column("status").to_pylist()
    chosen: dict[str, int] = {}
    for row in sorted(range(len(ids)), key=lambda row: (statuses[row] == FAILED, row)):
        chosen.setdefault(ids[row], row)
    return table.take(sorted(chosen.values()))


def _only(table: pa.Table, run_ids: set[str]) -> pa.Table:
    if set(pc.unique(table.column("run_id")).to_pylist()) <= run_ids:
        return table
    return table.filter(pc.is_in(table.column("run_id"), pa.array(sorted(run_ids), pa.string())))


def _without(table: pa.Table, run_ids: set[str]) -> pa.Table:
    if not run_ids:
        return table
    return table.filter(
        pc.invert(pc.is_in(table.column("run_id"), pa.array(sorted(run_ids), pa.string())))
    )
