"""The report of a sweep: one HTML file that needs nothing else."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import koco_stream
from flows.figures.by_name import FIGURES
from flows.halving import read_decisions, rungs_of
from flows.tables import best_of, runs_of, summary_of, sweep_note
from koco_stream.manifest import load_manifest
from koco_stream.places import Place, Where, place


def write_report(store: Where, sweep: str) -> Place:
    """Write the report of a sweep that has run on `store`; returns its place. Raises `WrongInput` if it has not."""
    note = sweep_note(store, sweep)
    runs = runs_of(store, sweep)
    figures = note["figures"] if "figures" in note else [note["figure"]] if note.get("figure") else []  # one, in older stores
    names = sorted(set(runs.column("dataset").to_pylist()))
    page = (
        Environment(loader=PackageLoader("flows", "templates"), autoescape=True, undefined=StrictUndefined)
        .get_template("report.html")
        .render(
            sweep=sweep,
            file=note["file"],
            runs=runs.num_rows,
            planned=len(note["run_ids"]),
            statuses=Counter(runs.column("status").to_pylist()),
            not_ok=[row for row in runs.select(["dataset", "learner", "params", "status", "error"]).to_pylist() if row["status"] != "ok"][
                :50
            ],
            datasets=[load_manifest(store, name) for name in names],
            hosts=sorted(set(runs.column("host").to_pylist())),
            versions=sorted(set(runs.column("version").to_pylist())),
            best=[{**row, "params": json.loads(row["params"])} for row in best_of(summary_of(runs))],
            rungs=rungs_of(read_decisions(store, sweep)),
            scan_seconds=sum(runs.column("seconds").to_pylist()),
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
