"""What a notebook shows of a sweep: its best configurations, and their curves."""

from flows.report.document import BEST, best_rows
from flows.report.pages import rendered
from flows.report.sections.curves import curves_of_best, error_over_rounds
from flows.report.sections.lines import READ, Results, results_of
from flows.results.views import runs_of
from koco_stream.io.paths import AnyPath

MOST_STREAMS = 4  # most streams with a plot
COLUMNS = [k for k, name in enumerate(BEST) if name != "± std"]


def best_results(store: AnyPath, sweep: str) -> Results:
    """The results of a sweep by stream, with the columns that the best of them need."""
    return results_of(runs_of(store, sweep, READ))


def best_table(results: Results) -> tuple[list[str], list[list[object]]]:
    """Columns and rows of a table of the best configurations, as the report has it, but shorter."""
    rows = [row for stream in results.streams for row in best_rows(stream)]
    return [BEST[k] for k in COLUMNS], [[row[k] for k in COLUMNS] for row in rows]


def notebook_html(store: AnyPath, sweep: str, summary: str) -> str:
    """HTML of a sweep's results for a notebook; the report has more.

    It has the best configurations of all streams, and the curves of the first `MOST_STREAMS`.
    """
    results = best_results(store, sweep)
    streams = results.streams[:MOST_STREAMS]
    curves = curves_of_best(store, streams)
    figures = [(one.title, error_over_rounds(one, curves, results.styles)) for one in streams]
    columns, rows = best_table(results)
    return rendered(
        "notebook.html",
        sweep=sweep,
        summary=summary,
        columns=columns,
        rows=rows,
        plots=[(title, figure.drawings[0]) for title, figure in figures if figure],
        left=len(results.streams) - len(streams),
    )
