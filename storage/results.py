"""The result tables: parts in, `runs` and `curves` out."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from koco_stream.files import written_atomically
from koco_stream.records import CURVES, RUNS, schema
from koco_stream.run import parts_folder


def table_files(store: str | Path, table: str) -> list[Path]:
    """The Parquet files of `runs` or `curves`, in the order of their names."""
    return sorted((Path(store) / "results" / table).glob("*.parquet"))


def part_files(store: str | Path) -> list[Path]:
    """Parts that were not collected yet."""
    return sorted(parts_folder(store).glob("*.parquet"))


def finished_runs(store: str | Path) -> set[str]:
    """The run_ids of all runs in the store, collected or not."""
    ids: set[str] = set()
    for path in (*table_files(store, "runs"), *part_files(store)):
        ids.update(pq.read_table(path, columns=["run_id"]).column("run_id").to_pylist())
    return ids


def read_runs(store: str | Path) -> pa.Table:
    """The `runs` table: one row a run, those of finished cohorts of a running sweep included."""
    tables = [pq.read_table(path).cast(schema(RUNS)) for path in table_files(store, "runs")]
    tables += [pq.read_table(path, columns=[c.name for c in RUNS]).cast(schema(RUNS)) for path in part_files(store)]
    return _first_of_each(pa.concat_tables([schema(RUNS).empty_table(), *tables]))


def read_curves(store: str | Path) -> pa.Table:
    """The `curves` table, those of finished cohorts of a running sweep included."""
    tables = [schema(CURVES).empty_table()]
    seen: set[str] = set()
    for path in table_files(store, "curves"):
        table = pq.read_table(path).cast(schema(CURVES))
        tables.append(_without(table, seen))
        seen.update(pc.unique(table.column("run_id")).to_pylist())
    for path in part_files(store):
        table = curves_of(pq.read_table(path, columns=["run_id", "curve"]))
        tables.append(_without(table, seen))
        seen.update(pc.unique(table.column("run_id")).to_pylist())
    return pa.concat_tables(tables)


def collect(store: str | Path) -> int:
    """Move all parts into one more file of each table; returns how many runs were added.

    The curves' file appears first, then the runs' file, then the parts go: wherever this is cut, no run is lost, and the next call
    finishes it without doubling one.
    """
    parts = part_files(store)
    if not parts:
        return 0
    known: set[str] = set()
    for path in table_files(store, "runs"):
        known.update(pq.read_table(path, columns=["run_id"]).column("run_id").to_pylist())
    table = _first_of_each(pa.concat_tables([pq.read_table(path) for path in parts]))
    table = _without(table, known)
    if table.num_rows:
        table = table.sort_by([(name, "ascending") for name in ("dataset", "learner", "params", "order_seed", "learner_seed", "run_id")])
        name = hashlib.sha256("".join(table.column("run_id").to_pylist()).encode()).hexdigest()[:32]
        _write(curves_of(table), Path(store) / "results" / "curves" / f"{name}.parquet")
        _write(table.select([c.name for c in RUNS]).cast(schema(RUNS)), Path(store) / "results" / "runs" / f"{name}.parquet")
    for path in parts:
        path.unlink()
    return int(table.num_rows)


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
