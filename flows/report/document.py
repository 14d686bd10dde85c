"""The report of a sweep: one HTML file that needs nothing else, and the same in words and tables as
Markdown.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flows.report.drawing import Figure
from flows.report.pages import fence_for, html_page, markdown_page
from flows.report.papers.figures import FIGURES
from flows.report.sections.costs import cost_against_error
from flows.report.sections.curves import curves_of_best, dictionary_over_rounds, error_over_rounds
from flows.report.sections.lines import (
    READ,
    Configuration,
    Line,
    Results,
    StreamResults,
    params_text,
    results_of,
    telling,
)
from flows.report.sections.regret import regret_and_bound
from flows.report.sections.steps import edge_words, edges_of, error_against_step
from flows.results.decisions import read_decisions, rungs_of
from flows.results.tables import runs_of, sweep_note
from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.streams.manifest import Manifest, load_manifest

MOST_STREAMS = 24  # that have plots
MOST_NOT_OK = 50
BEST = (
    "dataset",
    "learner",
    "parameters",
    "runs",
    "error rate",
    "± std",
    "mean loss",
    "± std",
    "dictionary",
    "seconds",
    "on the edge",
)
DATA = ("dataset", "rows", "features", "values a row", "source", "done to it", "identity")
RUNGS = (
    "dataset",
    "learner",
    "rung",
    "rounds",
    "configurations",
    "went on",
    "the best then",
    "its mean loss",
)


@dataclass(frozen=True)
class Section:
    """What is drawn of one stream."""

    anchor: str
    title: str
    figures: list[Figure]


@dataclass(frozen=True)
class Report:
    """All that a report says, as text, figures and tables."""

    sweep: str
    summary: str
    file: str
    flags: list[str]
    published: list[Figure]
    best_note: str
    best: list[list[Any]]
    sections: list[Section]
    rungs: list[list[Any]]
    not_ok_note: str
    not_ok: list[list[Any]]
    data: list[list[Any]]
    circumstances: list[list[Any]]
    best_columns: tuple[str, ...] = BEST
    data_columns: tuple[str, ...] = DATA
    rung_columns: tuple[str, ...] = RUNGS

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Where the page's sections are: anchor and title."""
        return [
            *([("look-at", "To look at first")] if self.flags else []),
            *((f"published-{k}", figure.title) for k, figure in enumerate(self.published, 1)),
            ("best", "Best parameters"),
            *((section.anchor, section.title) for section in self.sections),
            *([("halving", "Successive halving")] if self.rungs else []),
            *([("not-ok", "Runs that are not ok")] if self.not_ok else []),
            ("run", "What was run"),
        ]


def write_report(store: AnyPath, sweep: str) -> StorePath:
    """Write the report of a sweep that has run on `store`, as HTML and as Markdown beside it;
    returns the HTML file's path. Raises `WrongInput` if it has not run.
    """
    report = report_of(store, sweep)
    folder = store_path(store) / "reports"
    (folder / f"{sweep}.md").write_text(
        markdown_page("report.md", report=report, fence=fence_for(report.file))
    )
    written = folder / f"{sweep}.html"
    written.write_text(html_page("report.html", report=report, contents=report.contents))
    return written


def report_of(store: AnyPath, sweep: str) -> Report:
    """What the report of a sweep says. Raises `WrongInput` if it has not run on `store`."""
    note = sweep_note(store, sweep)
    runs = runs_of(store, sweep, READ)
    results = results_of(runs)
    rungs = rungs_of(read_decisions(store, sweep))
    streams = whole_streams(results) if rungs else results.streams
    manifests = manifests_of(store, results)
    statuses = {
        row["values"]: row["counts"] for row in pc.value_counts(runs.column("status")).to_pylist()
    }
    bad = runs.filter(pc.not_equal(runs.column("status"), "ok"))
    return Report(
        sweep=sweep,
        summary=(
            f"{runs.num_rows:,} of {len(note['run_ids']):,} runs on"
            f" {len({s.dataset for s in results.streams}):,} datasets"
        )
        + (
            ": " + ", ".join(f"{count:,} {status}" for status, count in sorted(statuses.items()))
            if statuses
            else ""
        )
        + f". The scans took {pc.sum(runs.column('seconds')).as_py() or 0.0:,.1f} s in all.",
        file=note["file"],
        flags=flags_of(
            streams, runs.num_rows, len(note["run_ids"]), statuses, len(streams) > MOST_STREAMS
        ),
        published=published_figures(store, sweep),
        best_note=(
            "The best configuration of each learner, by size of sketch, on each stream: by error"
            " rate, or mean loss where there is none. Means and standard deviations over orders and"
            " seeds. Parameters: those of the grid, and what is not at its default."
        ),
        best=[
            best_row(stream, line, line.best)
            for stream in streams
            for line in stream.lines
            if line.best
        ],
        sections=sections_of(store, streams[:MOST_STREAMS], results, manifests),
        rungs=[rung_row(row) for row in rungs],
        not_ok_note=(
            f"The first {MOST_NOT_OK} of {bad.num_rows:,}."
            if bad.num_rows > MOST_NOT_OK
            else "A run that diverged has not failed."
        ),
        not_ok=[
            list(row.values())
            for row in (
                bad.select(["dataset", "learner", "params", "status", "error"])
                .slice(0, MOST_NOT_OK)
                .to_pylist()
            )
        ],
        data=[
            data_row(results, manifests, name)
            for name in dict.fromkeys(s.dataset for s in results.streams)
        ],
        circumstances=circumstances_of(runs),
    )


def published_figures(store: AnyPath, sweep: str) -> list[Figure]:
    """The papers' figures that the sweep's file names."""
    note = sweep_note(store, sweep)
    # one, in older stores
    names = note["figures"] if "figures" in note else [note["figure"]] if note.get("figure") else []
    runs = runs_of(store, sweep) if names else None
    return [FIGURES[name](store, runs) for name in names if runs is not None and runs.num_rows]


def whole_streams(results: Results) -> list[StreamResults]:
    """The streams that no other one continues: with halving, those of its last rung."""

    def kind(stream: StreamResults) -> tuple[Any, ...]:
        return tuple(value for key, value in stream.how.items() if key != "max_rows")

    longest = {
        kind(stream): stream for stream in sorted(results.streams, key=lambda stream: stream.rounds)
    }
    return [stream for stream in results.streams if longest[kind(stream)] is stream]


def manifests_of(store: AnyPath, results: Results) -> dict[str, Manifest]:
    """The manifests, by dataset hash, of the datasets that the store still has as they were
    read.
    """
    found = {}
    for stream in results.streams:
        try:
            manifest = load_manifest(store, stream.dataset)
        except WrongInput:
            continue
        if manifest.dataset_hash == stream.dataset_hash:
            found[stream.dataset_hash] = manifest
    return found


def sections_of(
    store: AnyPath, streams: list[StreamResults], results: Results, manifests: dict[str, Manifest]
) -> list[Section]:
    """The sections of these streams, each with the figures that its results allow."""
    curves = curves_of_best(store, streams)
    found = []
    for stream in streams:
        manifest = manifests.get(stream.dataset_hash)
        figures = (
            error_over_rounds(stream, curves, results.styles),
            error_against_step(stream, results.styles),
            cost_against_error(stream, manifest, results.styles),
            dictionary_over_rounds(stream, curves, results.styles),
            regret_and_bound(store, stream, manifest, curves, results.styles),
        )
        found.append(
            Section(
                stream.anchor, stream.title, [figure for figure in figures if figure is not None]
            )
        )
    return found


def flags_of(
    streams: list[StreamResults], there: int, planned: int, statuses: dict[str, int], capped: bool
) -> list[str]:
    """What a reader must not overlook: runs that are missing or not ok, optima on the edge of their
    grid, what is not drawn.
    """
    flags = (
        [f"{planned - there:,} of {planned:,} runs are not there yet"] if there < planned else []
    )
    flags += [
        f"{count:,} runs {status}" for status, count in sorted(statuses.items()) if status != "ok"
    ]
    if capped:
        left = [stream.title for stream in streams[MOST_STREAMS:]]
        flags.append(
            f"{len(left):,} streams have no plots, only their best parameters:"
            f" {', '.join(left[:10])}" + ", …" * (len(left) > 10)
        )
    return flags + [
        f"{stream.title}: {words}"
        for stream in streams
        for line in stream.lines
        for words in edge_words(line)
    ]


def best_row(stream: StreamResults, line: Line, best: Configuration) -> list[Any]:
    """A row of `BEST`."""
    edges = ", ".join(f"{name} ({end})" for name, end in edges_of(line).items())
    return [
        stream.title,
        line.learner,
        params_text(best.params, telling(line, best.params)) or None,
        best.n_runs if best.n_runs == best.planned else f"{best.n_runs} of {best.planned}",
        *(
            best.means["error_rate"],
            best.deviations["error_rate"],
            best.means["mean_loss"],
            best.deviations["mean_loss"],
        ),
        *(best.means["dictionary_size"], best.means["seconds"]),
        edges or None,
    ]


def rung_row(row: dict[str, Any]) -> list[Any]:
    """A row of `RUNGS`."""
    name = row["dataset"] if row["order"] == "as-stored" else f"{row['dataset']}, {row['order']}"
    counts = (row["rung"], row["rounds"], row["configurations"], row["went_on"])
    return [name, row["learner"], *counts, params_text(row["params"]), row["mean_loss"]]


def data_row(results: Results, manifests: dict[str, Manifest], name: str) -> list[Any]:
    """A row of `DATA`; of a dataset that is no longer in the store only its identity."""
    hashes = list(
        dict.fromkeys(stream.dataset_hash for stream in results.streams if stream.dataset == name)
    )
    m = next((manifests[one] for one in hashes if one in manifests), None)
    if m is None:
        return [
            name,
            None,
            None,
            None,
            "no longer in the store",
            None,
            ", ".join(one[:12] for one in hashes),
        ]
    done = "; ".join(m.transformations) or None
    return [
        name,
        m.n_rows,
        m.n_features,
        round(m.n_values / m.n_rows, 1),
        came_from(m.source),
        done,
        m.dataset_hash[:12],
    ]


def circumstances_of(runs: pa.Table) -> list[list[Any]]:
    """Where, when and with what the runs were computed."""
    learners = runs.group_by("learner").aggregate([("numbers_version", "max")]).sort_by("learner")
    versions = ", ".join(
        f"{row['learner']} {row['numbers_version_max']}" for row in learners.to_pylist()
    )
    ends = pc.min_max(runs.column("finished_at")).as_py()
    hosts, software = (
        sorted(v for v in pc.unique(runs.column(name)).to_pylist() if v)
        for name in ("host", "version")
    )
    first = sorted(v for v in pc.unique(runs.column("sweep")).to_pylist() if v)
    when = [f"{end:%Y-%m-%d %H:%M} UTC" for end in (ends["min"], ends["max"]) if end]
    return [
        ["machines", "; ".join(hosts) or None],
        ["versions", "; ".join(software) or None],
        ["numbers_version of the learners", versions or None],
        ["runs ended", " to ".join(dict.fromkeys(when)) or None],
        ["computed first by the sweeps", ", ".join(first) or None],
    ]


def came_from(source: dict[str, Any]) -> str:
    """A manifest's source in a few words: its files, its folder of documents, its generator; – if
    it says nothing.
    """
    files = source.get("files") or [source]
    return ", ".join(
        str(file.get("file") or file.get("folder") or file.get("generator") or "–")
        for file in files
    )
