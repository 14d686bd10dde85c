"""Successive halving: its decisions, one table in the store for each sweep, and which runs of a
sweep are to the ends of their streams.
"""

import math
from collections.abc import Sequence

import pyarrow as pa

from flows.tables.tables import grouped, lists_of
from koco_stream.io.paths import AnyPath, store_path
from koco_stream.io.table_file import named, read_table, write_tables

STREAM = (
    *("dataset", "positive_class", "multiclass", "dataset_hash"),
    *("order", "window_rows", "sharding"),
)
DECISIONS = pa.schema(
    [
        pa.field("rung", pa.int64(), metadata={"meaning": "from 1"}),
        pa.field(
            "rounds",
            pa.int64(),
            metadata={"meaning": "rounds done when it was decided", "unit": "rounds"},
        ),
        pa.field("dataset", pa.string()),
        pa.field("positive_class", pa.float64()),
        pa.field("multiclass", pa.string()),
        pa.field("order", pa.string()),
        pa.field("learner", pa.string()),
        pa.field(
            "params", pa.string(), metadata={"meaning": "the configuration, as canonical JSON"}
        ),
        pa.field("n_runs", pa.int64(), metadata={"meaning": "orders and seeds", "unit": "runs"}),
        pa.field(
            "mean_loss",
            pa.float64(),
            metadata={"meaning": "mean over the runs; null if one of them is not ok"},
        ),
        pa.field("rank", pa.int64(), metadata={"meaning": "1 for the best"}),
        pa.field("goes_on", pa.bool_()),
    ]
)


def write_decisions(store: AnyPath, sweep: str, decisions: Sequence[dict[str, object]]) -> None:
    """Write the decisions of a sweep as a table; without any, remove the table of that name."""
    file = store_path(store) / "results" / "halving" / f"{sweep}.parquet"
    if not decisions:
        file.remove()
        return
    write_tables([pa.Table.from_pylist(list(decisions), DECISIONS)], file)


def read_decisions(store: AnyPath, sweep: str) -> pa.Table:
    """Read the decisions of a sweep; a table without rows if it has none.

    Raises `WrongInput` if it cannot be read.
    """
    file = store_path(store) / "results" / "halving" / f"{sweep}.parquet"
    if not file.is_file():
        return DECISIONS.empty_table()
    with named(file):
        return read_table(file, DECISIONS.names).cast(DECISIONS)


def has_rungs(store: AnyPath, sweep: str) -> bool:
    """Whether a sweep has halved."""
    return read_decisions(store, sweep).num_rows > 0


def whole_runs(store: AnyPath, sweep: str | None, runs: pa.Table) -> pa.Table:
    """Runs of a sweep; if it has halved, without those to its rungs."""
    return without_rungs(runs) if sweep is not None and has_rungs(store, sweep) else runs


def without_rungs(runs: pa.Table) -> pa.Table:
    """Runs of a sweep with halving, without those on a stream that a longer one continues."""
    streams = list(zip(*lists_of(runs, [*STREAM, "max_rows"]), strict=True))
    longest = {
        stream: max(math.inf if rows is None else rows for *_, rows in found)
        for stream, found in grouped(set(streams), lambda one: one[:-1]).items()
    }
    kept = [(math.inf if rows is None else rows) == longest[tuple(s)] for *s, rows in streams]
    return runs.filter(pa.array(kept, pa.bool_()))
