"""The result tables: parts in, `runs` and `curves` out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from koco_stream.files import locked, written_atomically
from koco_stream.records import CURVES, RUNS, Column, part_schema, schema
from koco_stream.run import parts_folder
from storage.store import LOCK

ATTEMPTS = 20
T = TypeVar("T")


def table_files(store: str | Path, table: str) -> list[Path]:
    """The Parquet files of `runs` or `curves`, in the order of their names."""
    return sorted((Path(store) / "results" / table).glob("*.parquet"))


def part_files(store: str | Path) -> list[Path]:
    """Parts that were not collected yet."""
    return sorted(parts_folder(store).glob("*.parquet"))


def finished_runs(store: str | Path) -> set[str]:
    """The run_ids of all runs in the store, collected or not."""
    return set().union(*_each(store, "runs", _ids))


def read_runs(store: str | Path) -> pa.Table:
    """The `runs` table: one row a run, those of finished cohorts of a running sweep included."""
    return _first_of_each(
        pa.concat_tables([schema(RUNS).empty_table(), *_each(store, "runs", lambda path: _as(RUNS, pq.read_table(path)))])
    )


def read_curves(store: str | Path) -> pa.Table:
    """The `curves` table, those of finished cohorts of a running sweep included."""

    def curves(path: Path) -> pa.Table:
        table = pq.read_table(path)
        return curves_of(table) if "curve" in table.column_names else _as(CURVES, table)

    tables = [schema(CURVES).empty_table()]
    seen: set[str] = set()
    for table in _each(store, "curves", curves):
        tables.append(_without(table, seen))
        seen.update(pc.unique(table.column("run_id")).to_pylist())
    return pa.concat_tables(tables)


def _each(store: str | Path, table: str, read: Callable[[Path], T]) -> list[T]:
    """What `read` gives for each file of the table, then for each part.

    Another process may be collecting. Parts are therefore listed first, so that a run is seen in one or the other; and when a file has
    gone in between, all is read again.
    """
    for attempt in range(ATTEMPTS):
        parts = part_files(store)
        try:
            return [read(path) for path in (*table_files(store, table), *parts)]
        except FileNotFoundError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError


def collect(store: str | Path) -> int:
    """Move all parts into one more file of each table; returns how many runs were added. Only one process does so at a time.

    The curves' file appears first, then the runs' file, then the parts go: wherever this is cut, no run is lost, and the next call
    finishes it without doubling one. A curves' file without its runs' file is what a cut left; it is made again.
    """
    if not part_files(store):
        return 0
    with locked(Path(store) / LOCK):
        return _collect(store)


def _collect(store: str | Path) -> int:
    whole = {path.name for path in table_files(store, "runs")}
    for path in table_files(store, "curves"):
        if path.name not in whole:
            path.unlink(missing_ok=True)
    parts = part_files(store)
    known = set().union(*(_ids(path) for path in table_files(store, "runs")))
    table = _without(_first_of_each(pa.concat_tables([part_schema().empty_table(), *map(_part, parts)])), known)
    if table.num_rows:
        table = table.sort_by([(name, "ascending") for name in ("dataset", "learner", "params", "order_seed", "learner_seed", "run_id")])
        name = hashlib.sha256("".join(table.column("run_id").to_pylist()).encode()).hexdigest()[:32]
        _write(curves_of(table), Path(store) / "results" / "curves" / f"{name}.parquet")
        _write(table.select([c.name for c in RUNS]).cast(schema(RUNS)), Path(store) / "results" / "runs" / f"{name}.parquet")
    for path in parts:
        path.unlink(missing_ok=True)
    return int(table.num_rows)


def _ids(path: Path) -> set[str]:
    return set(pq.read_table(path, columns=["run_id"]).column("run_id").to_pylist())


def _as(columns: tuple[Column, ...], table: pa.Table) -> pa.Table:
    """The table with these columns, as declared now: those that an older version did not write are null."""
    for column in columns:
        if column.name not in table.column_names:
            table = table.append_column(column.name, pa.nulls(table.num_rows, column.type))
    return table.select([c.name for c in columns]).cast(schema(columns))


def _part(path: Path) -> pa.Table:
    table = pq.read_table(path)
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


def _write(table: pa.Table, path: Path) -> None:
    with written_atomically(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


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
