"""The report of a sweep: one HTML file that needs nothing else."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.compute as pc
from jinja2 import Environment, PackageLoader, StrictUndefined

import koco_stream
from flows.figures.by_name import FIGURES
from flows.halving import read_decisions, rungs_of
from flows.tables import STREAM_AND_CONFIGURATION, best_of, runs_of, sweep_note
from koco_stream.manifest import load_manifest
from koco_stream.places import Place, Where, place

SHOWN = (
    *STREAM_AND_CONFIGURATION,
    *("run_id", "numbers_version", "status", "error", "sketch_size", "mean_loss", "error_rate", "seconds", "host", "version"),
)


def write_report(store: Where, sweep: str) -> Place:
    """Write the report of a sweep that has run on `store`; returns its place. Raises `WrongInput` if it has not."""
    note = sweep_note(store, sweep)
    figures = note["figures"] if "figures" in note else [note["figure"]] if note.get("figure") else []  # one, in older stores
    runs = runs_of(store, sweep, None if figures else SHOWN)
    names = sorted(pc.unique(runs.column("dataset")).to_pylist())
    not_ok = runs.select(["dataset", "learner", "params", "status", "error"]).filter(pc.not_equal(runs.column("status"), "ok"))
    page = (
        Environment(loader=PackageLoader("flows", "templates"), autoescape=True, undefined=StrictUndefined)
        .get_template("report.html")
        .render(
            sweep=sweep,
            file=note["file"],
            runs=runs.num_rows,
            planned=len(note["run_ids"]),
            statuses={row["values"]: row["counts"] for row in pc.value_counts(runs.column("status")).to_pylist()},
            not_ok=not_ok.slice(0, 50).to_pylist(),
            datasets=[load_manifest(store, name) for name in names],
            hosts=sorted(pc.unique(runs.column("host")).to_pylist()),
            versions=sorted(pc.unique(runs.column("version")).to_pylist()),
            best=[{**row, "params": json.loads(row["params"])} for row in best_of(runs)],
            rungs=rungs_of(read_decisions(store, sweep)),
            scan_seconds=pc.sum(runs.column("seconds")).as_py() or 0.0,
            came_from=came_from,
            figures=[FIGURES[name](store, runs) for name in figures if runs.num_rows],
            version=koco_stream.__version__,
        )
    )
    written = place(store) / "reports" / f"{sweep}.html"
    written.write_text(page)
    return written


def came_from(source: dict[str, Any]) -> str:
    """A manifest's source in a few words: its files, its folder of documents, its generator; – if it says nothing."""
    files = source.get("files") or [source]
    return ", ".join(str(file.get("file") or file.get("folder") or file.get("generator") or "–") for file in files)
