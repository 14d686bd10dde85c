"""Tables of the nightly runs of a sweep: history of the results, and accepted reference numbers."""

import hashlib
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.io.files import content_hash
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.io.table_file import write_tables
from koco_stream.runs.schemas import RUNS, Column, Columns, schema
from storage.results import FINISHED, conformed, read_curves, read_runs, rows_in, with_status

IDENTITY = (
    "dataset",
    "positive_class",
    "multiclass",
    "order",
    "order_seed",
    "window_rows",
    "max_rows",
    "learner",
    "params",
    "learner_seed",
)
OUTCOME = (
    "status",
    "error",
    "rounds",
    "mean_loss",
    "error_rate",
    "regret",
    "comparator_largest",
    "dictionary_size",
)

NUMBERS: Columns = (
    *(
        column
        for column in RUNS
        if column.name in (*IDENTITY, "dataset_hash", "seconds", "host", *OUTCOME)
    ),
    Column(
        "digest",
        str,
        "hash of the outcome and of the curve: equal only if all of it is equal to the bit",
    ),
)

HISTORY: Columns = (
    Column("night", str, "the planned time of the nightly run, in UTC; by hand, when it began"),
    Column("ended", datetime, "when it was compared"),
    Column("sweep", str, "the sweep's name"),
    Column("dataset", str, "the dataset's name"),
    Column("learner", str, "the learner's name"),
    Column("runs", int, "runs of this learner on this dataset", "runs"),
    Column("digest", str, "hash of all their numbers"),
    Column("mean_loss", float, "mean over these runs; null if none ended well"),
    Column("changed", int, "runs whose numbers are not those of the accepted run", "runs"),
    Column(
        "largest_change", float, "largest relative change of their mean loss; null if there is none"
    ),
    Column("numbers", str, "first, same, new, changed"),
    Column(
        "ratio",
        float,
        "median over the runs of their seconds over those of the accepted night; null if nothing"
        " can be compared",
    ),
    Column("speed", str, "same, slower, faster; null if nothing can be compared"),
    Column("scan_seconds", float, "the sweep's own scans", "s"),
    Column(
        "result", str, "of the whole night: first, same numbers, changed numbers, slower, faster"
    ),
    Column("accepted", bool, "whether this night was accepted: the next ones are compared with it"),
    Column(
        "code",
        str,
        "hash of koco_stream's sources, and the versions of what it stands on, as canonical JSON",
    ),
    Column("host", str, "the machine and its processor"),
)


def night_path(store: AnyPath, sweep: str) -> StorePath:
    """The store of a sweep's latest nightly run."""
    return store_path(store) / "nights" / sweep


def night_names(store: AnyPath) -> list[str]:
    nights = store_path(store) / "nights"
    return [
        name for name in nights.names() if (nights / name / "sweeps" / f"{name}.json").is_file()
    ]


def read_nights(store: AnyPath, sweep: str) -> pa.Table:
    """Oldest first; empty if there are none."""
    return _rows(store, "history", sweep, HISTORY)


def read_accepted(store: AnyPath, sweep: str) -> pa.Table:
    """The `NUMBERS` that nights must reproduce; empty if no night was accepted."""
    return _rows(store, "accepted", sweep, NUMBERS)


def add_night(store: AnyPath, sweep: str, rows: list[dict[str, Any]]) -> None:
    """Rows replace those of the same night, if it was interrupted before."""
    (night,) = {row["night"] for row in rows}
    kept = [row for row in read_nights(store, sweep).to_pylist() if row["night"] != night]
    _write_nights(store, sweep, [*kept, *rows])


def accept(store: AnyPath, sweep: str, night: str, numbers: pa.Table) -> None:
    write_tables([numbers], _file(store, "accepted", sweep))
    rows = read_nights(store, sweep).to_pylist()
    for row in rows:
        row["accepted"] |= row["night"] == night
    _write_nights(store, sweep, rows)


def numbers_of(store: AnyPath) -> pa.Table:
    """Outcomes of all runs in a store, with a digest of each, sorted by the runs' identity."""
    runs = with_status(read_runs(store), FINISHED)
    curves = curve_hashes(read_curves(store))
    outcomes = zip(*(runs.column(name).to_pylist() for name in ("run_id", *OUTCOME)), strict=True)
    digests = [  # a float's text has all of its bits
        content_hash([*map(repr, outcome), curves.get(run_id, "")]) for run_id, *outcome in outcomes
    ]
    return conformed(
        NUMBERS,
        runs.append_column("digest", pa.array(digests, pa.string())).sort_by(
            [(name, "ascending") for name in IDENTITY]
        ),
    )


def curve_hashes(curves: pa.Table) -> dict[str, str]:
    curves = curves.sort_by([("run_id", "ascending"), ("t", "ascending")])
    runs = pc.run_end_encode(curves.column("run_id").combine_chunks())
    columns = [
        np.split(column.fill_null(-1).to_numpy(), runs.run_ends.to_numpy()[:-1])
        for column in curves.drop_columns("run_id").columns
    ]
    return {
        run_id: hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:32]
        for run_id, *parts in zip(runs.values.to_pylist(), *columns, strict=False)
    }


def _file(store: AnyPath, table: str, sweep: str) -> StorePath:
    return store_path(store) / table / f"{sweep}.parquet"


def _rows(store: AnyPath, table: str, sweep: str, columns: Columns) -> pa.Table:
    file = _file(store, table, sweep)
    return rows_in(file, columns) if file.is_file() else schema(columns).empty_table()


def _write_nights(store: AnyPath, sweep: str, rows: list[dict[str, Any]]) -> None:
    write_tables([pa.Table.from_pylist(rows, schema(HISTORY))], _file(store, "history", sweep))
