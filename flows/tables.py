"""Reading results for people: the runs of a sweep, and the best configurations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from koco_stream.errors import WrongInput, nearest
from koco_stream.places import Where, place
from storage.results import read_runs

SUMMARY = (
    "dataset",
    "dataset_hash",
    "order",
    "window_rows",
    "max_rows",
    "learner",
    "params",
    "n_runs",
    "mean_loss_mean",
    "mean_loss_std",
    "error_rate_mean",
    "error_rate_std",
    "seconds_mean",
)


def sweep_note(store: Where, name: str) -> dict[str, Any]:
    """What the store remembers of a sweep. Raises `WrongInput` with the nearest name if it has not run here."""
    notes = place(store) / "sweeps"
    note = notes / f"{name}.json"
    if not note.is_file():
        there = [path.name.removesuffix(".json") for path in notes.files(".json")]
        raise WrongInput(f"no sweep {name!r} has run on {store}" + (nearest(name, there) if there else ""))
    return json.loads(note.read_text())  # type: ignore[no-any-return]


def runs_of(store: Where, sweep: str | None) -> pa.Table:
    """The `runs` table, or the part of it that belongs to a sweep."""
    table = read_runs(store)
    if sweep is None:
        return table
    ids = pa.array(sweep_note(store, sweep)["run_ids"], pa.string())
    return table.filter(pc.is_in(table.column("run_id"), ids))


def summary_of(runs: pa.Table) -> list[dict[str, Any]]:
    """One row for each stream and configuration, over order seeds and learner seeds; by dataset, then best first (see `merit`).

    A stream here is a dataset (what it holds, not its name alone), its positive class, its order, and how many rows of it are read. Of
    runs that older code has computed too, only the newest count.
    """
    keys = ["dataset", "positive_class", "dataset_hash", "order", "window_rows", "sharding", "max_rows", "learner", "params"]
    versions = pc.fill_null(runs.column("numbers_version"), 0)
    table = runs.select([*keys, "status", "mean_loss", "error_rate", "seconds"]).append_column("version", versions)
    newest = table.group_by(keys).aggregate([("version", "max")])
    ok = table.filter(pc.and_(pc.equal(table.column("status"), "ok"), pc.is_valid(table.column("mean_loss"))))
    deviation = pc.VarianceOptions(ddof=1)
    measured = ok.group_by([*keys, "version"]).aggregate(
        [
            ("mean_loss", "count"),
            ("mean_loss", "mean"),
            ("mean_loss", "stddev", deviation),
            ("error_rate", "count"),
            ("error_rate", "mean"),
            ("error_rate", "stddev", deviation),
            ("seconds", "mean"),
        ]
    )
    last = dict(
        zip(zip(*(newest.column(key).to_pylist() for key in keys), strict=True), newest.column("version_max").to_pylist(), strict=True)
    )
    rows = []
    for row in rows_of(measured):
        if row["version"] != last[tuple(row[key] for key in keys)]:
            continue
        positive = row["positive_class"]
        rows.append(
            {
                "dataset": row["dataset"] if positive is None else f"{row['dataset']}:{positive:g}",
                "dataset_hash": row["dataset_hash"][:12],
                "order": row["order"],
                "window_rows": row["window_rows"],
                "max_rows": row["max_rows"],
                "learner": row["learner"],
                "params": row["params"],
                "n_runs": row["mean_loss_count"],
                "mean_loss_mean": row["mean_loss_mean"],
                "mean_loss_std": row["mean_loss_stddev"] if row["mean_loss_count"] > 1 else None,
                "error_rate_mean": row["error_rate_mean"],
                "error_rate_std": row["error_rate_stddev"] if row["error_rate_count"] > 1 else None,
                "seconds_mean": row["seconds_mean"],
            }
        )
    rows.sort(key=lambda r: (*stream_of(r), merit(r), r["learner"], r["params"]))
    return rows


def rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The table's rows: `to_pylist`, but column by column, which is much faster for many rows."""
    for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
        yield dict(zip(table.column_names, values, strict=True))


def stream_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """What tells the streams of a summary apart."""
    return (row["dataset"], row["dataset_hash"], row["order"], row["window_rows"] or 0, row["max_rows"] or 0)


def merit(row: dict[str, Any]) -> float:
    """What a summary row is ranked by: its error rate, or its loss if it has none."""
    return float(row["mean_loss_mean"] if row["error_rate_mean"] is None else row["error_rate_mean"])


def best_of(summary: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The best row of each stream and learner (Oja-SON by sketch size), in the order of the summary."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in summary:
        seen.setdefault((*stream_of(row), row["learner"], json.loads(row["params"]).get("sketch_size")), row)
    return list(seen.values())
