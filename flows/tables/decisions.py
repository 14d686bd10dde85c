"""Successive halving: its decisions, one table in the store for each sweep."""

from collections.abc import Sequence

import pyarrow as pa

from koco_stream.io.paths import AnyPath, store_path
from koco_stream.io.table_file import named, read_table, write_tables
from koco_stream.runs.schemas import Column, schema

DECISIONS = schema(
    (
        Column("rung", int, "from 1"),
        Column("rounds", int, "rounds done when it was decided", "rounds"),
        Column("dataset", str, "the dataset's name"),
        Column("positive_class", float, "as in `runs`"),
        Column("multiclass", str, "as in `runs`"),
        Column("order", str, "as in `runs`"),
        Column("learner", str, "the learner's name"),
        Column("params", str, "the configuration, as canonical JSON"),
        Column("n_runs", int, "orders and seeds", "runs"),
        Column("mean_loss", float, "mean over the runs; null if one of them is not ok"),
        Column("rank", int, "1 for the best"),
        Column("goes_on", bool, "whether it goes on to the next rung"),
    )
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
