"""What a notebook shows of a sweep: its best configurations, and their curves."""

from typing import Any

from flows.charts import drawn
from flows.report.document import BEST
from flows.report.pages import rendered
from flows.report.sections import Sections
from flows.views.views import Views
from koco_stream.io.paths import AnyPath

MOST_STREAMS = 4  # most streams with a plot
COLUMNS = {name: column for name, column in BEST.items() if not name.startswith("± std")}


def sections_of(store: AnyPath, sweep: str) -> Sections:
    """The sections of a sweep's report, as far as they need no dataset."""
    return Sections(Views(store, [sweep]), {})


def best_table(sections: Sections) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of a table of the best configurations, as the report has it, but shorter."""
    rows = [row for title in sections.streams for row in sections.best.get(title, ())]
    return [*COLUMNS], [[row[name] for name in COLUMNS.values()] for row in rows]


def notebook_html(store: AnyPath, sweep: str, summary: str) -> str:
    """HTML of a sweep's results for a notebook; the report has more.

    It has the best configurations of all streams, and the curves of the first `MOST_STREAMS`.
    """
    sections = sections_of(store, sweep)
    columns, rows = best_table(sections)
    charts = sections.curves().charts[:1]
    plots = [(title, drawn(spec)) for chart in charts for title, spec in chart.files(MOST_STREAMS)]
    left = len(sections.streams) - len(plots)
    return rendered(
        "notebook.html",
        **{"sweep": sweep, "summary": summary, "columns": columns, "rows": rows},
        **{"plots": plots, "left": left},
    )
