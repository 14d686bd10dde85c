"""The sections of a sweep's report: each is a view, which `sections.sql` has, and its charts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from flows.charts import Chart, Row, is_wide
from flows.pages import Figure
from flows.report.rows import manifests_of
from flows.tables.decisions import read_decisions
from flows.tables.parameters import params_text, sort_key, telling, varied
from flows.tables.tables import grouped
from flows.views.views import Views, table_of
from koco_stream.io.paths import AnyPath
from koco_stream.metrics import METRICS
from storage.results import read_curves, read_windows

SQL = (Path(__file__).parent / "sections.sql").read_text()
READERS = {"curves_drawn": read_curves, "windows_drawn": read_windows}
MOST_STREAMS = 24  # most streams in charts
FRONT = "Pareto front"
WIDE = {"x": 8.0, "y": 20.0}  # values of which the ends have a larger ratio have logarithmic axes
MEANS = "Means over orders and seeds, with bands from the least to the largest value"
BAND: dict[str, Any] = {"band": ("least", "largest")}


class Drawn(NamedTuple):
    """The charts of a view: one, or one for each `what` if it has that column.

    `title`, `x` and `y` may be of `value` and `merit`, for what these are called. `log` has the
    axes that are logarithmic where values are wide; `how` are further arguments of `Chart`.
    """

    section: str
    view: str
    title: str
    x: str
    y: str
    log: str = "xy"
    how: Mapping[str, Any] = {}


BEST = Drawn(
    *("", "best_drawn", "The best of each learner", "merit", "stream", "x"),
    {
        "mark": "point",
        "alt": "The error rate of each learner's best configuration on each dataset; the table has"
        " the best two.",
    },
)
CURVES = Drawn(
    "Curves", "curves_of_best", "{value} over the rounds", "round t", "value", "xy", BAND
)
CHARTS = (
    CURVES,
    Drawn("Parameters", "parameter_values", "{value}", "value", "merit", "xy", {"series": "line"}),
    Drawn(
        *("Parameters", "parameter_words", "{value}", "merit", "value", "x"),
        {"series": "line", "mark": "point"},
    ),
    Drawn("Windows", "windows_of_best", "Metrics over windows", "last round", "value", "", BAND),
    Drawn(
        *("Costs", "cost_points", "{value} against {merit}", "value", "merit", "xy"),
        {"mark": "point", "joined": (FRONT,)},
    ),
)
NOTES = {
    "Curves": f"The best configuration of each of the best ten learners. {MEANS}, from round 10"
    " on.",
    "Parameters": "The best at each value, over the learner's other parameters, averaged over"
    " orders and seeds; of many values the best 64.",
    "Windows": f"{MEANS}. At vertical lines the stream changes.",
    "Costs": "A point is a configuration, averaged over orders and seeds: the best 16 of each"
    " learner, and the Pareto front, on which nothing is better in both. Time is that of computing,"
    " without reading; other runs may have shared the pass and the machine.",
}


class Sections:
    """A sweep's views with those of its report's sections, and their charts.

    Attributes
    ----------
    views : Views
        The views.
    manifests : dict
        Those of the sweep's datasets that the store has, by their hashes.
    statuses : dict
        How many runs have each status.
    missing : int
        How many runs are not computed yet.
    datasets : set of str
        Those of the runs.
    varied : dict
        By learner, the values of each of its parameters that is not the same everywhere.
    names : list of str
        What has colours in turn: the learners, and the front of costs.
    streams : list of str
        All streams, in the order of the numbers in their names.
    best : dict
        By stream, the best configuration of each learner but `Constant`, the best first.
    measure : str
        What is compared, in words.
    """

    def __init__(self, store: AnyPath, sweep: str) -> None:
        self.views = views = Views(store, [sweep])
        counts = views.rows(
            "SELECT status, count(*) AS n FROM runs GROUP BY status ORDER BY status"
        )
        self.statuses = {row["status"]: row["n"] for row in counts}
        self.missing = len(views.notes[sweep]["run_ids"]) - sum(self.statuses.values())
        self.datasets = {row["dataset"] for row in views.rows("SELECT DISTINCT dataset FROM runs")}
        found = manifests_of(store, sorted(self.datasets))
        self.manifests = {one.dataset_hash: one for one in found.values()}
        self.varied = dict[str, dict[str, list[Any]]]()
        told = list[tuple[Any, ...]]()
        every = views.rows("SELECT DISTINCT learner, params, sketch_size FROM configurations")
        for learner, rows in sorted(grouped(every, itemgetter("learner")).items()):
            decoded = [json.loads(row["params"]) for row in rows]
            self.varied[learner] = varied(learner, decoded)
            for row, params in zip(rows, decoded, strict=True):
                words = params_text(params, telling(learner, params, self.varied[learner]))
                told.append((*row.values(), words))
        columns = {"learner": str, "params": str, "sketch_size": int, "parameters": str}
        shown = [
            (name, f"{name.replace('_', ' ')} ({METRICS[name].better} is better)")
            for name in METRICS
        ]
        changes = ((one.dataset_hash, t) for one in self.manifests.values() for t in one.changes)
        views.register("told", table_of(told, **columns))
        views.register("metrics", table_of(shown, metric=str, shown=str))
        views.register("changes", table_of(changes, dataset_hash=str, t=int))
        views.register("decisions", read_decisions(store, sweep))
        for name, read in READERS.items():
            views.register(name, read(store, []))
        views.connection.execute(SQL)
        ids = [row["run_id"] for row in views.rows("SELECT DISTINCT run_id FROM drawn_runs")]
        for name, read in READERS.items():  # of the runs that are drawn alone
            views.register(name, read(store, ids))
        self.names = [*self.varied, FRONT]
        streams = views.rows("SELECT DISTINCT stream FROM described")
        self.streams = sorted((row["stream"] for row in streams), key=sort_key)
        best = self.rows("best_of_each WHERE learner <> 'Constant' ORDER BY merit, learner", None)
        self.best = grouped(best, itemgetter("stream"))
        rates = {row["error_rate_mean"] is not None for row in best}
        measures = ["error rate"] * (True in rates) + ["mean loss"] * (rates != {True})
        self.measure = " or ".join(measures)

    def rows(self, view: str, most: int | None = MOST_STREAMS) -> list[Row]:
        """The rows of a view, by stream; of so many streams at most."""
        place = {title: k for k, title in enumerate(self.streams[:most])}
        rows = [row for row in self.views.rows(f"FROM {view}") if row["stream"] in place]
        return sorted(rows, key=lambda row: place[row["stream"]])  # it is stable

    def table(self, view: str) -> list[Row]:
        """The rows of a view of datasets, in the order of the numbers in their names."""
        return sorted(self.views.rows(f"FROM {view}"), key=lambda row: sort_key(row.get("dataset")))

    def charts(self, one: Drawn, first: str = "") -> Iterator[Chart]:
        """Yield the charts of a view that has rows; a stream may be the first one."""
        rows = sorted(self.rows(one.view), key=lambda row: row["stream"] != first)
        for what, found in grouped(rows, lambda row: row.get("what", "value")).items():
            value = f"Progressive {self.measure}" if what == "Progress" else what
            yield self.chart(one, found, {"value": value, "merit": self.measure})

    def chart(self, one: Drawn, found: Sequence[Row], called: Mapping[str, str]) -> Chart:
        """The chart of some rows of a view, of which some columns are called otherwise."""
        kept = [name for name in found[0] if name != "what"]
        rows = [{called.get(name, name): row[name] for name in kept} for row in found]
        x, y = called.get(one.x, one.x), called.get(one.y, one.y)
        picks = [name for name in ("stream", "metric") if name in rows[0] and name != y]
        by_pick = grouped(rows, lambda row: tuple(row[name] for name in picks)).values()
        log = [
            axis
            for axis, column in (("x", x), ("y", y))
            if axis in one.log
            and any(is_wide([row[column] for row in some], WIDE[axis]) for some in by_pick)
        ]
        series = one.how.get("series", "learner")
        lines = sorted({row[series] for row in rows}, key=sort_key)
        title = one.title.format(**called)
        how = {
            "alt": f"{title}. {_ends(rows, series, y)}"
            if x == "round t"
            else f"{title}: {len(rows):,} points.",
            "names": self.names if series == "learner" else lines,
            "marks": self.rows("changes_drawn") if one.view == "windows_of_best" else (),
            **one.how,
        }
        return Chart(title, rows=rows, x=x, y=y, log="".join(log), picks=picks, **how)

    def figures(self) -> Iterator[Figure]:
        """Yield the sections that have charts."""
        for title, some in grouped(CHARTS, itemgetter(0)).items():
            charts = [chart for one in some for chart in self.charts(one)]
            if charts:
                yield Figure(title, charts, note=NOTES[title])


def _ends(rows: Sequence[Row], series: str, y: str) -> str:
    """What the lines of the first stream end with, in words."""
    first = rows[0]["stream"]
    ends = {row[series]: row[y] for row in rows if row["stream"] == first}
    return (
        f"On {first}, at the end: {'; '.join(f'{name} {end:.4g}' for name, end in ends.items())}."
    )
