"""Reading results for people: the runs of a sweep, and the best configurations."""

from __future__ import annotations

import json
from collections import defaultdict
from statistics import fmean, stdev
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
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    keys = ("dataset", "positive_class", "dataset_hash", "order", "window_rows", "sharding", "max_rows", "learner", "params")
    newest: dict[tuple[Any, ...], int] = defaultdict(int)
    listed = runs.select([*keys, "numbers_version", "status", "mean_loss", "error_rate", "seconds"]).to_pylist()
    for row in listed:
        key = tuple(row[k] for k in keys)
        newest[key] = max(newest[key], row["numbers_version"] or 0)
    for row in listed:
        key = tuple(row[k] for k in keys)
        if row["status"] == "ok" and row["mean_loss"] is not None and (row["numbers_version"] or 0) == newest[key]:
            groups[key].append(row)
    rows = []
    for (dataset, positive, identity, order, window_rows, _, max_rows, learner, params), members in groups.items():
        losses = [m["mean_loss"] for m in members]
        errors = [m["error_rate"] for m in members if m["error_rate"] is not None]
        rows.append(
            {
                "dataset": dataset if positive is None else f"{dataset}:{positive:g}",
                "dataset_hash": identity[:12],
                "order": order,
                "window_rows": window_rows,
                "max_rows": max_rows,
                "learner": learner,
                "params": params,
                "n_runs": len(members),
                "mean_loss_mean": fmean(losses),
                "mean_loss_std": stdev(losses) if len(losses) > 1 else None,
                "error_rate_mean": fmean(errors) if errors else None,
                "error_rate_std": stdev(errors) if len(errors) > 1 else None,
                "seconds_mean": fmean(m["seconds"] for m in members),
            }
        )
    rows.sort(key=lambda r: (*stream_of(r), merit(r), r["learner"], r["params"]))
    return rows


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
