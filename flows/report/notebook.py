"""What a notebook shows of a sweep: its best configurations, and their curves."""

from flows.charts import Row, drawn
from flows.pages import rendered
from flows.report.sections import CURVES, Sections
from koco_stream.io.paths import AnyPath

MOST_STREAMS = 4  # most streams with a plot


def best_rows(sections: Sections) -> list[Row]:
    """The best configurations, as the report has them, but without deviations."""
    return sections.table("(SELECT COLUMNS(name -> name NOT LIKE '± %') FROM best_parameters)")


def notebook_html(store: AnyPath, sweep: str, summary: str) -> str:
    """HTML of a sweep's results for a notebook; the report has more.

    It has the best configurations of all streams, and the curves of the first `MOST_STREAMS`.
    """
    sections = Sections(store, sweep)
    curves = [*sections.charts(CURVES)][:1]
    plots = [(title, drawn(spec)) for one in curves for title, spec in one.files(MOST_STREAMS)]
    left = len(sections.streams) - len(plots)
    return rendered(
        "notebook.html",
        **{"title": sweep, "summary": summary, "rows": best_rows(sections), "plots": plots},
        notes=[f"The report also has the curves of the other {left}."] * (left > 0),
    )
