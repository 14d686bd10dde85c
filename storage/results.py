"""The result tables: parts in, `runs` and `curves` out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from koco_stream.places import Place, Where, place
from koco_stream.records import CURVES, RUNS, Column, part_schema, schema
from koco_stream.run import parts_folder
from storage.store import LOCK

ATTEMPTS = 20
T = TypeVar("T")


def table_files(store: Where, table: str) -> list[Place]:
    """The Parquet files of `runs` or `curves`, in the order of their names."""
    return (place(store) / "results" / table).files(".parquet")


def part_files(store: Where) -> list[Place]:
    """Parts that were not collected yet."""
    return parts_folder(store).files(".parquet")


def finished_runs(store: Where) -> set[str]:
    """The run_ids of all runs in the store, collected or not."""
    return set().union(*_each(store, "runs", _ids))


def read_runs(store: Where) -> pa.Table:
    """The `runs` table: one row a run, those of finished cohorts of a running sweep included."""
    return _first_of_each(pa.concat_tables([schema(RUNS).empty_table(), *_each(store, "runs", lambda file: _as(RUNS, file.read_table()))]))


def read_curves(store: Where) -> pa.Table:
    """The `curves` table, those of finished cohorts of a running sweep included."""

    def curves(file: Place) -> pa.Table:
        table = file.read_table()
        return curves_of(table) if "curve" in table.column_names else _as(CURVES, table)

    tables = [schema(CURVES).empty_table()]
    seen: set[str] = set()
    for table in _each(store, "curves", curves):
        tables.append(_without(table, seen))
        seen.update(pc.unique(table.column("run_id")).to_pylist())
    return pa.concat_tables(tables)


def _each(store: Where, table: str, read: Callable[[Place], T]) -> list[T]:
    """What `read` gives for each file of the table, then for each part.

    Another process may be collecting. Parts are therefore listed first, so that a run is seen in one or the other; and when a file has
    gone in between, all is read again.
    """
    for attempt in range(ATTEMPTS):
        parts = part_files(store)
        try:
            return [read(file) for file in (*table_files(store, table), *parts)]
        except FileNotFoundError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError


def collect(store: Where) -> int:
    """Move all parts into one more file of each table; returns how many runs were added.

    The curves' file appears first, then the runs' file, then the parts go: wherever this is cut, no run is lost, and the next call
    finishes it without doubling one. A curves' file without its runs' file is what a cut left; it goes once another file has its runs.

    In a folder a lock lets only one process do so at a time. An object store has no lock, and several may: nothing is lost then either.
    A part goes only after its runs are in a runs' file, whose curves are complete, and no file of a table that is complete ever goes.
    Collectors that saw the same parts write the same files, by name and content. If they saw others, a run may be in two files of a
    table, with the same content; `read_runs` and `read_curves` count it once, and who reads the files directly takes each run_id once.
    """
    if not part_files(store):
        return 0
    with (place(store) / LOCK).locked():
        return _collect(store)


def _collect(store: Where) -> int:
    parts = part_files(store)
    table = _first_of_each(pa.concat_tables([part_schema().empty_table(), *_parts(parts)]))
    known = _known(store)  # after the parts were read: what another collector has taken away by now is in it
    table = _without(table, known)
    if table.num_rows:
        table = table.sort_by([(name, "ascending") for name in ("dataset", "learner", "params", "order_seed", "learner_seed", "run_id")])
        ids = table.column("run_id").to_pylist()
        name = hashlib.sha256("".join(ids).encode()).hexdigest()[:32]
        results = place(store) / "results"
        _write(curves_of(table), results / "curves" / f"{name}.parquet")
        _write(table.select([c.name for c in RUNS]).cast(schema(RUNS)), results / "runs" / f"{name}.parquet")
        known.update(ids)
    whole = {file.name for file in table_files(store, "runs")}
    for file in table_files(store, "curves"):
        if file.name not in whole and _ids_if_there(file) <= known:
            file.remove()
    for file in parts:
        file.remove()
    return int(table.num_rows)


def _parts(files: list[Place]) -> Iterator[pa.Table]:
    """The parts that are still there: one that has gone is in the tables."""
    for file in files:
        try:
            yield _part(file)
        except FileNotFoundError:
            continue


def _known(store: Where) -> set[str]:
    """The run_ids in the runs' files."""
    return set().union(*map(_ids, table_files(store, "runs")))


def _ids_if_there(file: Place) -> set[str]:
    try:
        return _ids(file)
    except FileNotFoundError:
        return set()


def _ids(file: Place) -> set[str]:
    return set(file.read_table(["run_id"]).column("run_id").to_pylist())


def _as(columns: tuple[Column, ...], table: pa.Table) -> pa.Table:
    """The table with these columns, as declared now: those that an older version did not write are null."""
    for column in columns:
        if column.name not in table.column_names:
            table = table.append_column(column.name, pa.nulls(table.num_rows, column.type))
    return table.select([c.name for c in columns]).cast(schema(columns))


def _part(file: Place) -> pa.Table:
    table = file.read_table()
    return _as(RUNS, table).append_column("curve", table.column("curve")).cast(part_schema())


def curves_of(parts: pa.Table) -> pa.Table:
    """The nested curves of a part as rows of the `curves` table."""
    nested = parts.column("curve").combine_chunks()
    which = pc.list_parent_indices(nested)
    points = pc.list_flatten(nested)
    fields = pa.chunked_array([points]) if isinstance(points, pa.Array) else points
    flat = pa.Table.from_struct_array(fields)
    flat = flat.add_column(0, "run_id", parts.column("run_id").combine_chunks().take(which))
    return flat.select([c.name for c in CURVES]).cast(schema(CURVES))


def _write(table: pa.Table, file: Place) -> None:
    with file.written() as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def _first_of_each(table: pa.Table) -> pa.Table:
    ids = table.column("run_id").to_pylist()
    if len(set(ids)) == len(ids):
        return table
    first = {run_id: place for place, run_id in reversed(list(enumerate(ids)))}
    return table.take(sorted(first.values()))


def _without(table: pa.Table, run_ids: set[str]) -> pa.Table:
    if not run_ids:
        return table
    return table.filter(pc.invert(pc.is_in(table.column("run_id"), pa.array(sorted(run_ids), pa.string()))))
