"""The report of a sweep: a self-contained HTML file, and its text and tables as Markdown."""

import gc
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flows.comparing.comparison import compared_sweep
from flows.report.drawing import Figure
from flows.report.pages import write_pages
from flows.report.papers.figures import FIGURES
from flows.report.sections.comparison import comparison_section
from flows.report.sections.costs import cost_against_error
from flows.report.sections.curves import curves_of_best, dictionary_over_rounds, error_over_rounds
from flows.report.sections.lines import (
    READ,
    Configuration,
    Line,
    Results,
    StreamResults,
    TrivialResults,
    results_of,
)
from flows.report.sections.overview import overview_of
from flows.report.sections.parameters import error_against_parameters
from flows.report.sections.regret import regret_and_bound
from flows.report.sections.windows import metrics_over_windows
from flows.results.views import runs_of
from flows.scores.constant import CONSTANT
from flows.tables.decisions import read_decisions
from flows.tables.parameters import params_text, telling
from flows.tables.sweep_runs import sweep_note
from flows.tables.tables import dataset_text, grouped
from koco_stream.errors import WrongInput
from koco_stream.io.paths import AnyPath, StorePath
from koco_stream.learners import LEARNERS
from koco_stream.metrics import METRICS
from koco_stream.streams.manifest import Manifest, load_manifest
from koco_stream.streams.orders import AS_STORED

MOST_STREAMS = 24  # most streams with plots
ALL_PLOTS = 8  # most streams that have others than that over the rounds
MOST_NOT_OK = 50
BEST = (
    *("dataset", "learner", "parameters", "runs", "error rate", "± std", "mean loss", "± std"),
    *("dictionary", "seconds", "beats Constant"),
)
FOREIGN = (
    "Learners of other libraries ran in separate processes. Their seconds include the conversion"
    " of each row to a dictionary or matrix, but not the start of the process."
)
DATA = ("dataset", "rows", "features", "values per row", "source", "transformations", "identity")
RUNGS = (
    *("dataset", "learner", "rung", "rounds", "configurations", "continued", "the best"),
    "its mean loss",
)


def write_report(store: AnyPath, sweep: str) -> StorePath:
    """Write the report of a sweep as HTML and Markdown; returns the path of the HTML file.

    Raises `WrongInput` if the sweep has not run on `store`.
    """
    # Plots are many small objects. Collecting garbage among all that a sweep has imported, again
    # and again, would take a sixth of the time. Freezing also sets back the count by which Python
    # decides when to look at old objects: where sweep follows sweep it never would.
    gc.freeze()
    try:
        return write_pages(store, sweep, "report", report=report_of(store, sweep))
    finally:
        gc.unfreeze()
        gc.collect()


def report_of(store: AnyPath, sweep: str) -> dict[str, Any]:
    """Content of a sweep's report for the templates: text, figures and table rows.

    Raises `WrongInput` if the sweep has not run on `store`.
    """
    note = sweep_note(store, sweep)
    runs = runs_of(store, sweep, READ)
    results = results_of(runs)
    rungs = rung_rows(read_decisions(store, sweep))
    streams = results.streams
    if rungs:  # without streams that another one continues: those of the last rung
        longest = {
            tuple(value for key, value in stream.how.items() if key != "max_rows"): stream
            for stream in sorted(streams, key=lambda stream: stream.rounds)
        }
        streams = [stream for stream in streams if stream in longest.values()]
    manifests = manifests_of(store, results)
    by = [(name, "ascending") for name in ("dataset", "learner", "params", "run_id")]
    bad = runs.filter(pc.not_equal(runs.column("status"), "ok")).sort_by(by)
    found = compared_sweep(store, sweep)
    measured = {name for stream in streams for _, best in stream.best_lines for name in best.means}
    metrics = [name for name in METRICS if name in measured]
    best = [row for stream in streams for row in best_rows(stream, metrics)]
    sections = sections_of(store, streams[:MOST_STREAMS], results, manifests)
    published = [name for name in note["figures"] if name in FIGURES]
    every_column = runs_of(store, sweep) if published else runs
    return {
        "sweep": sweep,
        "overview": overview_of(sweep, note, runs, streams, found),
        "file": note["file"],
        "published": [FIGURES[name](store, every_column) for name in published if runs.num_rows],
        "comparison": comparison_section(found) if found else None,
        "foreign_note": FOREIGN
        if "foreign" in pc.unique(runs.column("numbers")).to_pylist()
        else "",
        "best_columns": [*BEST, *metrics],
        "best": best,
        "fewer_plots": fewer_plots(streams, sections),
        "sections": sections,
        "rung_columns": RUNGS,
        "rungs": rungs,
        "not_ok_note": (
            f"The first {MOST_NOT_OK} of {bad.num_rows:,}."
            if bad.num_rows > MOST_NOT_OK
            else "A run that diverged does not count as failed."
        ),
        "not_ok": [
            [row[name] for name in ("dataset", "learner", "params", "status", "error")]
            for row in bad.slice(0, MOST_NOT_OK).to_pylist()
        ],
        "data_columns": DATA,
        "data": [data_row(manifests, name, hashes) for name, hashes in results.datasets.items()],
        "circumstances": circumstances_of(runs),
    }


def manifests_of(store: AnyPath, results: Results) -> dict[str, Manifest]:
    """Manifests, by dataset hash, of the datasets that the store has."""
    found = {}
    for name in results.datasets:
        with suppress(WrongInput):
            manifest = load_manifest(store, name)
            found[manifest.dataset_hash] = manifest
    return found


def sections_of(
    store: AnyPath, streams: list[StreamResults], results: Results, manifests: dict[str, Manifest]
) -> list[tuple[StreamResults, list[Figure]]]:
    """The streams, each with the figures that can be drawn from its results.

    All have their curves, and the first `ALL_PLOTS` streams the other figures too.
    """
    curves, styles = curves_of_best(store, streams), results.styles
    sections = [
        (stream, [one for one in [error_over_rounds(stream, curves, styles)] if one])
        for stream in streams
    ]
    for stream, found in sections[:ALL_PLOTS]:
        # of the first of its data seeds that the store has: they have the same shape of rows
        manifest = next((manifests[one] for one in stream.identities if one in manifests), None)
        more = (
            metrics_over_windows(store, stream, manifest, styles),
            error_against_parameters(stream, styles),
            cost_against_error(stream, manifest, styles),
            dictionary_over_rounds(stream, curves, styles),
            regret_and_bound(store, stream, manifest, curves, styles),
        )
        found += [one for one in more if one]
    return sections


def fewer_plots(
    streams: Sequence[StreamResults], sections: Sequence[tuple[StreamResults, Sequence[Figure]]]
) -> list[tuple[str, list[str]]]:
    """What the streams that lack plots have instead, and their titles."""
    few = [stream.title for stream, figures in sections if len(figures) < 2]
    most = max((len(figures) for _, figures in sections), default=0)
    found = [
        ("only plots over the rounds", few if most > 1 else []),
        ("no plots, only this table", [one.title for one in streams[len(sections) :]]),
    ]
    return [(words, titles) for words, titles in found if titles]


def best_rows(stream: StreamResults, metrics: Sequence[str] = ()) -> list[list[Any]]:
    """Table rows with the columns of `BEST` and of `metrics` for a stream, the best first.

    They are those of its learners' best configurations, and of `Constant` if it is not among them,
    whose metrics are not known.
    """
    rows = [
        (best.merit, [*best_row(stream, line, best), *(best.means.get(name) for name in metrics)])
        for line, best in stream.best_lines
    ]
    if all(line.learner != CONSTANT for line, _ in stream.best_lines):
        rows += [
            (
                loss if error is None else error,
                [*trivial_row(stream, one), *(None for _ in metrics)],
            )
            for one in stream.trivial
            for loss, error in [(one.means["mean_loss"], one.means["error_rate"])]
        ]
    return [row for _, row in sorted(rows, key=lambda pair: pair[0] or 0.0)]


def trivial_row(stream: StreamResults, one: TrivialResults) -> list[Any]:
    """Table row with the columns of `BEST` for `Constant`, which the sweep has not run."""
    default = LEARNERS[CONSTANT].defaults()["loss"]
    several = len(stream.trivial) > 1
    return [
        stream.title,
        CONSTANT,
        f"loss={one.loss}" if one.loss and (several or one.loss != default) else None,
        None,
        *(one.means["error_rate"], one.deviations["error_rate"]),
        *(one.means["mean_loss"], one.deviations["mean_loss"]),
        *(None, None, None),
    ]


def best_row(stream: StreamResults, line: Line, best: Configuration) -> list[Any]:
    """Table row with the columns of `BEST` for the best configuration of a learner on a stream."""
    means, deviations = best.means, best.deviations
    return [
        stream.title,
        line.name,
        params_text(best.params, telling(line.learner, best.params, line.tried)) or None,
        best.n_runs if best.n_runs == best.planned else f"{best.n_runs} of {best.planned}",
        *(means["error_rate"], deviations["error_rate"]),
        *(means["mean_loss"], deviations["mean_loss"]),
        *(means["dictionary_size"], means["seconds"]),
        best.beats_constant,
    ]


def rung_rows(decisions: pa.Table) -> list[list[Any]]:
    """Table rows with the columns of `RUNGS`, one for each rung of a learner on a stream.

    They have the number of configurations, the number that continued, and the best one.
    """
    by = ("order", "learner", "rung", "rounds")
    groups = grouped(
        decisions.to_pylist(),
        lambda row: (
            dataset_text(row["dataset"], row["positive_class"], row["multiclass"]),
            *(row[name] for name in by),
        ),
    )
    rows = []
    for (dataset, order, *decided), found in sorted(groups.items(), key=lambda item: item[0]):
        best = min(found, key=lambda row: row["rank"])
        name = dataset if order == AS_STORED else f"{dataset}, {order}"
        going, parameters = sum(row["goes_on"] for row in found), json.loads(best["params"])
        rows.append([name, *decided, len(found), going, params_text(parameters), best["mean_loss"]])
    return rows


def data_row(manifests: dict[str, Manifest], name: str, hashes: Sequence[str]) -> list[Any]:
    """Table row with the columns of `DATA`; only the identity if the dataset is gone."""
    m = next((manifests[one] for one in hashes if one in manifests), None)
    if m is None:
        return [
            name,
            None,
            None,
            None,
            "not in the store",
            None,
            ", ".join(one[:12] for one in hashes if one) or None,
        ]
    return [
        name,
        m.n_rows,
        m.n_features,
        round(m.n_values / m.n_rows, 1),
        came_from(m.source),
        "; ".join(m.transformations) or None,
        m.dataset_hash[:12],
    ]


def circumstances_of(runs: pa.Table) -> list[list[Any]]:
    """Table rows on when, where and with which versions the runs were computed."""
    learners = runs.group_by("learner").aggregate([("numbers_version", "max")]).sort_by("learner")
    versions = (f"{row['learner']} {row['numbers_version_max']}" for row in learners.to_pylist())
    hosts, software, sweeps = (
        sorted(value for value in pc.unique(runs.column(name)).to_pylist() if value)
        for name in ("host", "version", "computed_by")
    )
    ends = pc.min_max(runs.column("finished_at")).as_py()
    when = [f"{end:%Y-%m-%d %H:%M} UTC" for end in (ends["min"], ends["max"]) if end]
    return [
        ["machines", "; ".join(hosts) or None],
        ["versions", "; ".join(software) or None],
        ["numbers_version of the learners", ", ".join(versions) or None],
        ["runs ended", " to ".join(dict.fromkeys(when)) or None],
        ["first computed by the sweeps", ", ".join(sweeps) or None],
    ]


def came_from(source: dict[str, Any]) -> str:
    """A dataset's source in a few words: files, folder of documents, or generator; – if unknown."""
    return ", ".join(
        str(file.get("file") or file.get("folder") or file.get("generator") or "–")
        for file in source.get("files") or [source]
    )
