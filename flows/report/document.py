"""The report of a sweep: a self-contained HTML file, and its text and tables as Markdown."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from flows.charts import drawn
from flows.comparing.comparison import Comparison, compared_sweep
from flows.comparing.shown import HEADINGS, summary_rows
from flows.report.content import Figure, Page
from flows.report.next_run import what_to_run_next
from flows.report.overview import dataset_rows, facts_of, first_chart, sentence_of, warnings_of
from flows.report.pages import write_page
from flows.report.papers.experiment import FIGURES
from flows.report.rows import manifests_of
from flows.report.sections import Row, Sections
from flows.tables.decisions import read_decisions
from flows.tables.parameters import params_text
from flows.tables.sweep_runs import sweep_names
from flows.tables.tables import dataset_text, grouped, rows_of
from flows.views.views import Views
from koco_stream.io.paths import AnyPath, StorePath, store_path
from koco_stream.metrics import METRICS
from koco_stream.streams.manifest import Manifest

MOST_NOT_OK = 50
NOT_OK = ("dataset", "learner", "params", "status", "error")
INDEX = ("sweep", "what it found", "state", "page")
BEST = {
    **{"dataset": "stream", "learner": "learner", "parameters": "parameters", "runs": "n_runs"},
    **{"error rate": "error_rate_mean", "± std": "error_rate_std", "mean loss": "mean_loss_mean"},
    **{"± std ": "mean_loss_std", "dictionary": "dictionary_size_mean", "seconds": "seconds_mean"},
    "beats Constant": "beats_constant",
    **{"Constant's error": "constant_error_rate_mean", "its loss": "constant_mean_loss_mean"},
}
BEST_NOTE = (
    "The best configuration of each learner on each stream, by error rate, or by mean loss where"
    " there is no error rate, over orders and seeds; one with a run that failed does not count."
    " The parameters are those that vary and those that are not at their default. Constant always"
    " predicts the best constant so far; a configuration beats it if its mean loss is smaller and,"
    " where there are classes, also its error rate."
)
FOREIGN = (
    "\nLearners of other libraries ran in separate processes. Their seconds include the conversion"
    " of each row, but not the start of the process."
)
DATA = ("dataset", "rows", "features", "values per row", "source", "transformations", "identity")
RUNGS = (
    *("dataset", "learner", "rung", "rounds", "configurations", "continued", "the best"),
    "its mean loss",
)
# columns of single runs that the first screen and the last sections need
READ = (
    *("status", "dataset", "dataset_hash", "order", "order_seed", "learner", "learner_seed"),
    *("params", "seconds", "doubtful_rounds", "error", "numbers", "numbers_version", "host"),
    *("version", "finished_at", "computed_by"),
)


def write_report(store: AnyPath, sweep: str, figures: Path | None = None) -> StorePath:
    """Write the report of a sweep as HTML and Markdown; returns the path of the HTML file.

    With a folder for `figures`, its charts are also files there, each as SVG and as PNG. Raises
    `WrongInput` if the sweep has not run on `store`.
    """
    page = page_of(store, sweep)
    if figures:
        write_figures(page, figures, sweep)
    return write_page(store, sweep, page)


def write_index(store: AnyPath) -> StorePath:
    """Write the page of a store's sweeps, a line each; returns its path."""
    rows = [
        [name, page.sentence, page.facts[-2], f"{name}.html" if file.is_file() else None]
        for name in sweep_names(store)
        for page in [page_of(store, name, whole=False)]
        for file in [store_path(store) / "reports" / f"{name}.html"]
    ]
    page = Page(
        f"Sweeps of {store}",
        columns=INDEX,
        rows=rows,
        links=[str(row[0]) for row in rows if row[-1]],
    )
    return write_page(store, "index", page)


def write_figures(page: Page, folder: Path, name: str) -> None:
    """Write the charts of a page as SVG and PNG, a file for each value that a reader may choose."""
    folder.mkdir(parents=True, exist_ok=True)
    for chart in [
        *([page.chart] if page.chart else []),
        *(c for f in page.figures for c in f.charts),
    ]:
        for chosen, spec in chart.files():
            words = re.sub(r"\W+", "-", f"{name} {chart.title} {chosen}".strip().lower())
            (folder / f"{words}.svg").write_text(drawn(spec), encoding="utf-8")
            (folder / f"{words}.png").write_bytes(drawn(spec, "png"))


def page_of(store: AnyPath, sweep: str, whole: bool = True) -> Page:
    """A sweep's report; if it is not `whole`, only what its first sentence needs.

    Raises `WrongInput` if the sweep has not run on `store`.
    """
    found = compared_sweep(store, sweep) if whole else None  # its views are gone before the others
    views = Views(store, [sweep])
    note = views.notes[sweep]
    names = (row["dataset"] for row in views.rows("SELECT DISTINCT dataset FROM runs"))
    sections = Sections(views, {m.dataset_hash: m for m in manifests_of(store, names).values()})
    runs = views.rows("SELECT " + ", ".join(f'"{name}"' for name in READ) + " FROM runs")
    missing = max(0, len(note["run_ids"]) - len(runs))
    named = [FIGURES[name] for name in note["figures"] if runs and name in FIGURES]
    papers = [figure for one in named for figure in [one.figure(views)] if figure.rows]
    facts, sentence = facts_of(runs, missing), sentence_of(sections)
    if papers and papers[0].verdict:
        sentence = f"{papers[0].verdict}."
    if not whole:
        return Page(sweep, facts, sentence)
    chart = papers[0].charts[0] if papers and papers[0].charts else first_chart(sections)
    columns, rows = dataset_rows(sections)
    return Page(
        f"Sweep {sweep}",
        facts,
        sentence,
        chart,
        columns,
        rows,
        warnings_of(sections, runs, missing, note["datasets"].values()),
        what_to_run_next(sections),
        small_print(sweep, sections, found),
        [
            *papers,
            *sections.figures(),
            *([comparison(found)] if found else []),
            *details(store, sweep, sections, runs),
        ],
        note["file"],
    )


def small_print(sweep: str, sections: Sections, found: Comparison | None) -> list[str]:
    """What the tests say, and how configurations were chosen."""
    several = any(
        len(values) > 1 for tried in sections.varied.values() for values in tried.values()
    )
    if found is None:
        return ["Configurations are chosen by the rounds on which they are judged here."] * several
    other = f" To choose otherwise: koco compare {sweep} --select first-half" * several
    return [found.conclusion, found.how + other]


def comparison(found: Comparison) -> Figure:
    """The section of a comparison. What it concludes stands on the first screen."""
    names, rows = summary_rows(found.summary)
    return Figure(
        "Comparison",
        [found.diagram],
        columns=[HEADINGS[name] for name in names],
        rows=rows,
        note="\n".join([found.meaning, *found.notes]),
    )


def details(
    store: AnyPath, sweep: str, sections: Sections, runs: Sequence[Row]
) -> Iterator[Figure]:
    """Yield the sections without charts: what was best, halving, what failed, what was run."""
    every = [row for title in sections.streams for row in sections.best.get(title, ())]
    columns = {**BEST, **{name: f"{name}_mean" for name in METRICS}}
    best = [[row[name] for name in columns.values()] for row in every]
    note = BEST_NOTE + FOREIGN * any(row["numbers"] == "foreign" for row in runs)
    yield Figure("Best parameters", (), (), [*columns], best, note)
    if rungs := rung_rows(read_decisions(store, sweep)):
        yield Figure("Successive halving", (), (), RUNGS, rungs)
    bad = sorted(([row[one] for one in NOT_OK] for row in runs if row["status"] != "ok"), key=str)
    if bad:
        note = f"{len(bad):,} runs; at most {MOST_NOT_OK} are here. Diverged is not failed."
        yield Figure("Runs that are not ok", (), (), NOT_OK, bad[:MOST_NOT_OK], note)
    datasets = sorted({(row["dataset"], row["dataset_hash"]) for row in runs}, key=str)
    data = [data_row(sections.manifests.get(key), name, key) for name, key in datasets]
    yield Figure("What was run: data", (), (), DATA, data)
    yield Figure("What was run: code", (), (), ("what", "value"), circumstances_of(runs))


def rung_rows(decisions: pa.Table) -> list[list[Any]]:
    """Table rows with the columns of `RUNGS`, one for each rung of a learner on a stream.

    They have the number of configurations, the number that continued, and the best one.
    """
    by = ("order", "learner", "rung", "rounds")
    groups = grouped(
        rows_of(decisions),
        lambda row: (
            dataset_text(row["dataset"], row["positive_class"], row["multiclass"]),
            *(row[name] for name in by),
        ),
    )
    rows = []
    for (dataset, order, *decided), found in sorted(groups.items(), key=lambda item: item[0]):
        best = min(found, key=lambda row: row["rank"])
        name = dataset if order == "as-stored" else f"{dataset}, {order}"
        going, parameters = sum(row["goes_on"] for row in found), json.loads(best["params"])
        rows.append([name, *decided, len(found), going, params_text(parameters), best["mean_loss"]])
    return rows


def data_row(m: Manifest | None, name: str, identity: str | None) -> list[Any]:
    """Table row with the columns of `DATA`; only the identity if the dataset is gone."""
    short = (identity or "")[:12] or None
    if m is None:
        return [name, None, None, None, "not in the store", None, short]
    per_row = round(m.n_values / m.n_rows, 1)
    made = "; ".join(m.transformations) or None
    return [name, m.n_rows, m.n_features, per_row, came_from(m.source), made, short]


def circumstances_of(runs: Sequence[Row]) -> list[list[Any]]:
    """Table rows on when, where and with which versions the runs were computed."""
    hosts, software, sweeps = (
        sorted({row[name] for row in runs if row[name]})
        for name in ("host", "version", "computed_by")
    )
    versions = {row["learner"]: row["numbers_version"] for row in runs}
    ends = sorted(row["finished_at"] for row in runs if row["finished_at"])
    when = [f"{end:%Y-%m-%d %H:%M} UTC" for end in (*ends[:1], *ends[-1:])]
    numbers = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return [
        ["machines", "; ".join(hosts) or None],
        ["versions", "; ".join(software) or None],
        ["numbers_version of the learners", numbers or None],
        ["runs ended", " to ".join(dict.fromkeys(when)) or None],
        ["first computed by the sweeps", ", ".join(sweeps) or None],
    ]


def came_from(source: dict[str, Any]) -> str:
    """A dataset's source in a few words: files, folder of documents, or generator; – if unknown."""
    return ", ".join(
        str(file.get("file") or file.get("folder") or file.get("generator") or "–")
        for file in source.get("files") or [source]
    )
