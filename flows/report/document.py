"""The report of a sweep: a self-contained HTML file, and its text and tables as Markdown."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.charts import drawn
from flows.comparing.blocks import blocks_of
from flows.comparing.comparison import Comparison
from flows.pages import Figure, Page, rendered, write_page
from flows.report.overview import (
    facts_of,
    first_chart,
    lines_of,
    sentence_of,
    warnings_of,
    what_to_run_next,
)
from flows.report.papers.experiment import FIGURES
from flows.report.regret import regret
from flows.report.sections import CURVES, Sections
from flows.tables.sweep_runs import sweep_names
from koco_stream.io.paths import AnyPath, StorePath, store_path

# sections without charts: titles, views and notes
TABLES = (
    (
        "Best parameters",
        "best_parameters",
        "The best configuration of each learner on each stream, by error rate, or by mean loss"
        " where there is no error rate, over orders and seeds: the rounds that choose it also judge"
        " it. One with a run that failed does not count. The parameters are those that vary and"
        " those that are not at their default."
        " Constant always predicts the best constant so far; a configuration beats it if its mean"
        " loss is smaller and, where there are classes, also its error rate. The seconds of"
        " learners of other libraries include the conversion of each row, but not the start of"
        " their process.",
    ),
    ("Halving and races", "rungs_decided", ""),
    ("Runs that are not ok", "not_ok", "At most 50 are here. Diverged is not failed."),
    ("What was run: code", "circumstances", ""),
)
MOST_PLOTS = 4  # of streams, in a notebook


def write_report(store: AnyPath, sweep: str, figures: Path | None = None) -> StorePath:
    """Write the report of a sweep; with a folder for `figures`, its charts too, as SVG and PNG."""
    page = page_of(store, sweep)
    if figures:
        write_figures(page, figures, sweep)
    return write_page(store, sweep, page)


def write_index(store: AnyPath) -> StorePath:
    names = sweep_names(store)
    links = [name for name in names if (store_path(store) / "reports" / f"{name}.html").is_file()]
    rows = [
        {
            "sweep": name,
            "what it found": page.finding,
            "state": page.facts[-2],
            "page": f"{name}.html" if name in links else None,
        }
        for name in names
        for page in [page_of(store, name, whole=False)]
    ]
    return write_page(store, "index", Page(f"Sweeps of {store}", rows=rows, links=links))


def write_figures(page: Page, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for chart in page.all_charts:
        for chosen, spec in chart.files():
            words = re.sub(
                r"\W+",
                "-",
                f"{name} {chart.title} {chosen}".replace("µs", "microseconds").strip().lower(),
            )
            (folder / f"{words}.svg").write_text(drawn(spec), encoding="utf-8")
            (folder / f"{words}.png").write_bytes(drawn(spec, "png"))


def page_of(store: AnyPath, sweep: str, whole: bool = True) -> Page:
    """A sweep's report; if it is not `whole`, only what its first sentence needs."""
    sections = Sections(store, sweep)
    views = sections.views
    note = sections.views.notes[sweep]
    named = [FIGURES[name] for name in note["figures"] if sections.statuses and name in FIGURES]
    papers = [figure for one in named for figure in [one.drawn(views)] if figure.rows]
    sentence = f"{papers[0].verdict}." if papers and papers[0].verdict else sentence_of(sections)
    facts = facts_of(sections)
    if not whole:
        return Page(sweep, finding=sentence, facts=facts)
    charts = [*(chart for figure in papers[:1] for chart in figure.charts), first_chart(sections)]
    blocks = blocks_of(views)
    found = (
        Comparison(blocks, halved=views.halved) if blocks.learners[1:] and blocks.blocks else None
    )
    # what it concludes stands on the first screen
    notes = "\n".join([found.meaning, *found.notes]) if found else ""
    return Page(
        f"Sweep {sweep}",
        [chart for chart in charts[:1] if chart],
        rows=lines_of(sections),
        note=f"{found.conclusion}\n{found.unresolved}\n{found.how}" if found else "",
        finding=sentence,
        facts=facts,
        flags=warnings_of(sections),
        next_run=what_to_run_next(sections),
        figures=[
            *papers,
            *sections.figures(),
            *regret(sections),
            *([Figure("Comparison", [found.diagram], (), found.said, notes)] if found else []),
            *details(sections),
        ],
        file=note["file"],
    )


def details(sections: Sections) -> Iterator[Figure]:
    for title, view, note in TABLES:
        if rows := sections.table(view):
            yield Figure(title, rows=rows, note=note)
    found = sections.views.rows("SELECT DISTINCT dataset, dataset_hash FROM runs ORDER BY ALL")
    data = [
        {
            "dataset": row["dataset"],
            "rows": m and m.n_rows,
            "features": m and m.n_features,
            "values per row": m and round(m.n_values / m.n_rows, 1),
            "source": came_from(m.source) if m else "not in the store",
            "transformations": ("; ".join(m.transformations) or None) if m else None,
            "identity": (row["dataset_hash"] or "")[:12] or None,
        }
        for row in found
        for m in [sections.manifests.get(row["dataset_hash"])]  # None if it is gone
    ]
    yield Figure("What was run: data", rows=data)


def came_from(source: dict[str, Any]) -> str:
    return ", ".join(
        str(file.get("file") or file.get("folder") or file.get("generator") or "–")
        for file in source.get("files") or [source]
    )


def notebook_html(store: AnyPath, sweep: str, summary: str) -> str:
    sections = Sections(store, sweep)
    plots = [
        (title, drawn(spec))
        for curves in [*sections.charts(CURVES)][:1]
        for title, spec in curves.files(MOST_PLOTS)
    ]
    left = len(sections.streams) - len(plots)
    return rendered(
        "notebook.html",
        title=sweep,
        summary=f"{sentence_of(sections)} {summary}.",
        rows=sections.table(  # without deviations
            "(SELECT COLUMNS(lambda name: name NOT LIKE '± %') FROM best_parameters)"
        ),
        plots=plots,
        notes=[f"The report also has the curves of the other {left}."] * (left > 0),
    )
