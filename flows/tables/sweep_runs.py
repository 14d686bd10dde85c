"""What the store has recorded of its sweeps: an entry of each, and decisions of halving."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from koco_stream.errors import WrongInput, nearest
from koco_stream.io.paths import AnyPath, store_path
from koco_stream.io.table_file import named, read_table, write_tables
from koco_stream.runs.schemas import Column, schema
from storage.nights import night_names, night_path
from storage.store import read_note

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


def sweep_names(store: AnyPath) -> list[str]:
    return [
        file.name.removesuffix(".json") for file in (store_path(store) / "sweeps").files(".json")
    ]


def sweep_note(store: AnyPath, name: str) -> dict[str, Any]:
    note = store_path(store) / "sweeps" / f"{name}.json"
    if "/" in name or not note.is_file():
        there = sweep_names(store)
        if name in night_names(store):
            raise WrongInput(
                f"{store} has no sweep {name!r}, only a nightly run of it: --store"
                f" {night_path(store, name)}"
            )
        raise WrongInput(f"{store} has no sweep {name!r}" + (nearest(name, there) if there else ""))
    return read_note(note)


def write_decisions(store: AnyPath, sweep: str, decisions: Sequence[dict[str, object]]) -> None:
    """Write the decisions of a sweep; without any, remove the table of that name."""
    file = store_path(store) / "results" / "halving" / f"{sweep}.parquet"
    if decisions:
        write_tables([pa.Table.from_pylist(list(decisions), DECISIONS)], file)
    else:
        file.remove()


def read_decisions(store: AnyPath, sweep: str) -> pa.Table:
    file = store_path(store) / "results" / "halving" / f"{sweep}.parquet"
    if not file.is_file():
        return DECISIONS.empty_table()
    with named(file):
        return read_table(file, DECISIONS.names).cast(DECISIONS)
