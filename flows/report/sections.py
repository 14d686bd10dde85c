"""The sections of a sweep's report: each is a view, which `sections.sql` has, and its charts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from flows.charts import Chart, Row
from flows.pages import Figure
from flows.report.rows import manifests_of
from flows.tables.parameters import params_text, sort_key, telling, varied
from flows.tables.sweep_runs import read_decisions
from flows.tables.text import grouped
from flows.views.views import READERS, Views, table_of
from koco_stream.io.paths import AnyPath
from koco_stream.metrics import METRICS

SQL = Path(__file__).with_name("sections.sql").read_text()
MOST_STREAMS = 24  # most streams in charts
FRONT = "Pareto front"
# positive values of which the ends have a larger ratio have logarithmic axes
WIDE = {"x": 8.0, "y": 20.0}
MEANS = "Means over orders and seeds, with bands from the least to the largest value"
METRIC_NAMES = [
    (one.name, f"{one.name.replace('_', ' ')} ({one.better} is better)") for one in METRICS.values()
]
# What `Chart` takes, with a view for its rows: there is a chart for each `what` that it has.
# `value` and `merit` stand for what these are called; `log` has axes that are logarithmic where
# values are wide.
BEST: dict[str, Any] = {
    "rows": "best_drawn",
    "title": "The best of each learner",
    "x": "merit",
    "y": "stream",
    "log": "x",
    "mark": "point",
    "alt": "The error rate of each learner's best configuration on each dataset; the table has the"
    " best two.",
}
CURVES: dict[str, Any] = {
    "rows": "curves_of_best",
    "title": "{value} over the rounds",
    "x": "round t",
    "y": "value",
    "log": "xy",
    "band": ("least", "largest"),
    "alt": "Curves of each learner's best configuration; Best parameters has what they end at.",
}
CHARTS: dict[str, Sequence[dict[str, Any]]] = {
    "Curves": [CURVES],
    "Parameters": [
        {
            "rows": "parameter_values",
            "title": "{value}",
            "x": "value",
            "y": "merit",
            "log": "xy",
            "series": "line",
        },
        {
            "rows": "parameter_words",
            "title": "{value}",
            "x": "merit",
            "y": "value",
            "log": "x",
            "series": "line",
            "mark": "point",
        },
    ],
    "Windows": [
        {
            "rows": "windows_of_best",
            "title": "Metrics over windows",
            "x": "last round",
            "y": "value",
            "log": "",
            "band": ("least", "largest"),
        }
    ],
    "Costs": [
        {
            "rows": "cost_points",
            "title": "{value} against {merit}",
            "x": "value",
            "y": "merit",
            "log": "xy",
            "mark": "point",
            "joined": (FRONT,),
        }
    ],
}
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
    """A sweep's views with those of its report's sections, and their charts."""

    def __init__(self, store: AnyPath, sweep: str) -> None:
        self.views = views = Views(store, [sweep])
        self.statuses = {
            row["status"]: row["n"]
            for row in views.rows(
                "SELECT status, count(*) AS n FROM runs GROUP BY ALL ORDER BY ALL"
            )
        }
        self.missing = len(views.notes[sweep]["run_ids"]) - sum(self.statuses.values())
        self.datasets = {*views.column("SELECT DISTINCT dataset FROM runs")}
        self.manifests = {one.dataset_hash: one for one in manifests_of(views).values()}
        every = views.rows(
            "SELECT DISTINCT learner, params, sketch_size FROM configurations ORDER BY ALL"
        )
        decoded = [(row["learner"], json.loads(row["params"]), row) for row in every]
        self.varied = {
            learner: varied(learner, [params for _, params, _ in rows])
            for learner, rows in grouped(decoded, itemgetter(0)).items()
        }
        told = [
            (*row.values(), params_text(params, telling(learner, params, self.varied[learner])))
            for learner, params, row in decoded
        ]
        changes = ((one.dataset_hash, t) for one in self.manifests.values() for t in one.changes)
        tables = {
            "told": table_of(told, learner=str, params=str, sketch_size=int, parameters=str),
            "metrics": table_of(METRIC_NAMES, metric=str, shown=str),
            "changes": table_of(changes, dataset_hash=str, t=int),
            "decisions": read_decisions(store, sweep),
        }
        for name, table in tables.items():
            views.connection.register(name, table)
        views.connection.execute(SQL)
        ids = views.column("SELECT DISTINCT run_id FROM drawn_runs")
        for name in ("curves", "windows"):  # of the runs that are drawn alone
            views.connection.register(f"stored_{name}", READERS[name][1](store, ids))
        self.streams = sorted(views.column("SELECT DISTINCT stream FROM described"), key=sort_key)
        self.best = grouped(self.rows("learners_in_turn", None), itemgetter("stream"))
        measures = views.column(
            "SELECT DISTINCT if(error_rate_mean IS NULL, 'mean loss', 'error rate') AS name"
            " FROM best_of_each ORDER BY name"
        )
        self.measure = " or ".join(measures) or "mean loss"

    def rows(self, view: str, most: int | None = MOST_STREAMS) -> list[Row]:
        place = {title: k for k, title in enumerate(self.streams[:most])}
        rows = [row for row in self.views.rows(f"FROM {view}") if row["stream"] in place]
        return sorted(rows, key=lambda row: place[row["stream"]])  # it is stable

    def table(self, view: str) -> list[Row]:
        return sorted(self.views.rows(f"FROM {view}"), key=lambda row: sort_key(row.get("dataset")))

    def charts(self, one: Mapping[str, Any], first: str = "") -> Iterator[Chart]:
        """Yield the charts of a declaration, if its view has rows; a stream may be the first."""
        rows = sorted(self.rows(one["rows"]), key=lambda row: row["stream"] != first)
        for what, found in grouped(rows, lambda row: row.get("what", "value")).items():
            value = f"Progressive {self.measure}" if what == "Progress" else what
            called = {"value": value, "merit": self.measure}
            shown = [
                {called.get(name, name): cell for name, cell in row.items() if name != "what"}
                for row in found
            ]
            axes = {axis: called.get(one[axis], one[axis]) for axis in ("x", "y")}
            yield self.chart({**one, **axes, "title": one["title"].format(**called), "rows": shown})

    def chart(self, one: Mapping[str, Any]) -> Chart:
        rows, x, y = (one[name] for name in ("rows", "x", "y"))
        picks = [name for name in ("stream", "metric") if name in rows[0] and name != y]
        by_pick = grouped(rows, lambda row: tuple(row[name] for name in picks)).values()
        log = [
            axis
            for axis in one["log"]
            if any(
                0 < WIDE[axis] * min(values) < max(values)
                for some in by_pick
                for values in [[row[one[axis]] for row in some]]
            )
        ]
        usual = {
            "alt": f"{one['title']}: {len(rows):,} points.",
            "names": sorted({row["line"] for row in rows}, key=sort_key)
            if "series" in one
            else [*self.varied, FRONT],
            "marks": self.rows("changes_drawn") if x == "last round" else (),
        }
        return Chart(**{**usual, **one, "log": "".join(log), "picks": picks})

    def figures(self) -> Iterator[Figure]:
        for title, declared in CHARTS.items():
            charts = [chart for one in declared for chart in self.charts(one)]
            if charts:
                yield Figure(title, charts, note=NOTES[title])
