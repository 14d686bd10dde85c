"""The sections of a sweep's report: each is a view, which `sections.sql` has, and its charts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

from flows.charts import Chart, is_wide
from flows.report.bounds import THEOREMS, bound_of, why_not
from flows.report.content import Figure
from flows.scores.constant import CONSTANT
from flows.scores.means import mean
from flows.tables.parameters import params_text, sort_key, telling, varied
from flows.tables.tables import grouped
from flows.views.views import Views, table_of
from koco_stream.metrics import METRICS
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.orders import AS_STORED
from koco_stream.streams.stream import Stream
from storage.results import read_curves, read_windows

Row = dict[str, Any]
SQL = (Path(__file__).parent / "sections.sql").read_text()
READERS = {"curves_drawn": read_curves, "windows_drawn": read_windows}
SETTINGS = {"learner": str, "params": str, "line": str, "name": str, "value": float, "word": str}
MOST_STREAMS = 24  # most streams in charts
MOST_SIZES = 6  # sketch sizes of a learner that have lines of their own
LOGARITHMIC = 8.0  # values whose ends have a larger ratio are drawn on a logarithmic axis
REGRETS = ("stream", "learner", "regret", "deviation", "largest")
FRONT = "Pareto front"
_stream = itemgetter("stream")
EVERY = 4  # every fourth recorded round has a bound: two a decade
MEANS = "Means over orders and seeds, with bands from the least to the largest value"


class Sections:
    """A sweep's views with those of its report's sections, and what the charts have in common."""

    def __init__(self, views: Views, manifests: Mapping[str, Manifest]) -> None:
        self.views, self.manifests = views, manifests
        found = views.rows("SELECT DISTINCT learner, params, sketch_size FROM configurations")
        by_learner = grouped(found, lambda row: row["learner"])
        self.varied = dict[str, dict[str, list[Any]]]()
        told, settings = [], list[Sequence[Any]]()
        for learner, rows in sorted(by_learner.items()):
            decoded = [json.loads(row["params"]) for row in rows]
            self.varied[learner] = varied(learner, decoded)
            sizes = {row["sketch_size"] for row in rows}
            for row, params in zip(rows, decoded, strict=True):
                words = params_text(params, telling(learner, params, self.varied[learner]))
                told.append((learner, row["params"], words))
                several = 1 < len(sizes) <= MOST_SIZES
                line = f"{learner} m = {row['sketch_size']}" if several else learner
                settings += [
                    (learner, row["params"], line, name, *_placed(params[name]))
                    for name in self.varied[learner]
                    if name in params
                ]
        views.register("told", table_of(told, learner=str, params=str, parameters=str))
        views.register("settings", table_of(settings, **SETTINGS))
        for name, read in READERS.items():
            views.register(name, read(views.store, []))
        views.connection.execute(SQL)
        ids = [row["run_id"] for row in views.rows("SELECT DISTINCT run_id FROM drawn_runs")]
        for name, read in READERS.items():  # of the runs that are drawn alone
            views.register(name, read(views.store, ids))
        self.names = sorted(by_learner)
        self.best = grouped(views.rows("FROM best_of_each ORDER BY merit, learner"), _stream)
        every = views.rows("SELECT DISTINCT stream FROM described")
        self.streams = sorted((row["stream"] for row in every), key=sort_key)
        self.titles = self.streams[:MOST_STREAMS]

    @cached_property
    def measure(self) -> str:
        """What is compared, in words."""
        kinds = {has_errors(row) for rows in self.best.values() for row in rows}
        if len(kinds) > 1:
            return "error rate or mean loss"
        return "error rate" if True in kinds else "mean loss"

    def rows(self, view: str) -> list[Row]:
        """The rows of a view, of the streams that charts show."""
        place = {title: k for k, title in enumerate(self.titles)}
        rows = [row for row in self.views.rows(f"FROM {view}") if row["stream"] in place]
        return sorted(rows, key=lambda row: place[row["stream"]])  # it is stable

    def chart(
        self, title: str, rows: Sequence[Row], columns: Mapping[str, str], **how: Any
    ) -> Chart:
        """A chart of rows: `columns` has the names of their columns by what they are called."""
        values = [[row[name] for name in columns.values()] for row in rows]
        alt = f"{title}: {len(rows):,} points."
        how = {"picks": ("stream",), "names": self.names, "alt": alt, **how}
        return Chart(title, how.pop("alt"), list(columns), values, **how)

    def figures(self) -> Iterator[Figure]:
        """Yield the sections for which there are results."""
        for section in (self.curves, self.parameters, self.windows, self.costs, self.regret):
            figure = section()
            if figure.charts or figure.rows:
                yield figure

    def curves(self, first: str = "") -> Figure:
        """Error, and the size of dictionaries, over the rounds; a stream may be the first one."""
        rows = sorted(self.rows("curves_of_best"), key=lambda row: row["stream"] != first)
        charts = []
        for y, low, high, title in (
            ("mean", "least", "largest", f"progressive {self.measure}"),
            ("size", "least_size", "largest_size", "points in the dictionary"),
        ):
            known = [row for row in rows if row[y] is not None]
            if known:
                ends = {(row["stream"], row["learner"]): row[y] for row in known}
                first = known[0]["stream"]
                said = "; ".join(f"{b} {v:.4g}" for (a, b), v in ends.items() if a == first)
                columns = {"stream": "stream", "learner": "learner", "parameters": "parameters"}
                columns |= {"round t": "t", title: y, "least": low, "largest": high}
                charts.append(
                    self.chart(
                        f"{title[0].upper()}{title[1:]} over the rounds",
                        known,
                        columns,
                        x="round t",
                        y=title,
                        band=("least", "largest"),
                        log="xy" if _is_wide(known, y) else "x",
                        alt=f"{title[0].upper()}{title[1:]} over the rounds. On {first}, at the"
                        f" end: {said}.",
                    )
                )
        return Figure(
            "Curves",
            charts,
            note=f"The best configuration of each of the best ten learners. {MEANS},"
            f" from round 10 on.",
        )

    def parameters(self) -> Figure:
        """Error against each parameter that varies."""
        charts = []
        for name, rows in grouped(self.rows("parameter_values"), lambda row: row["name"]).items():
            numeric = all(row["word"] is None for row in rows)
            values = [row["value"] for row in rows] if numeric else []
            log = "x" if values and 0 < LOGARITHMIC * min(values) <= max(values) else ""
            column = "value" if numeric else "word"
            rows = [{**row, "word": row["word"] or f"{row['value'] or 0:g}"} for row in rows]
            columns = {"stream": "stream", "line": "line", name: column, self.measure: "merit"}
            columns |= {"parameters": "parameters", "runs": "n_runs"}
            charts.append(
                self.chart(
                    name,
                    rows,
                    columns,
                    x=name if numeric else self.measure,
                    y=self.measure if numeric else name,
                    series="line",
                    names=sorted({row["line"] for row in rows}, key=sort_key),
                    mark="line" if numeric else "point",
                    log=log + ("y" if numeric else "x") * _is_wide(rows, "merit"),
                )
            )
        return Figure(
            "Parameters",
            charts,
            note="The best at each value, over the learner's other parameters, averaged over orders"
            " and seeds; of many values the best 64.",
        )

    def windows(self) -> Figure:
        """Metrics over windows of rounds."""
        rows = self.rows("windows_of_best")
        for row in rows:
            known = METRICS.get(row["metric"])
            better = f" ({known.better} is better)" if known else ""
            row["shown"] = row["metric"].replace("_", " ") + better
        changes = [
            (title, t)
            for title in self.titles
            for manifest, how in [self._read(title)]
            if manifest is not None and how["order"] == AS_STORED
            for t in manifest.changes
            if t < how["rounds"]
        ]
        columns = {"stream": "stream", "metric": "shown", "learner": "learner"}
        columns |= {"last round": "last", "value": "mean", "least": "least", "largest": "largest"}
        chart = self.chart(
            "Metrics over windows",
            rows,
            columns,
            x="last round",
            y="value",
            band=("least", "largest"),
            picks=("stream", "metric"),
            marks=(("stream", "last round"), changes),
        )
        lines = " After the rounds with vertical lines the stream changes." * bool(changes)
        return Figure("Windows", [chart] * bool(rows), note=f"{MEANS}.{lines}")

    def costs(self) -> Figure:
        """What configurations cost, against their error."""
        charts = []
        for kind, rows in grouped(self.rows("cost_points"), lambda row: row["kind"]).items():
            front = [{**row, "learner": FRONT} for row in rows if row["front"]]
            columns = {"stream": "stream", "learner": "learner", "parameters": "parameters"}
            columns |= {kind: "cost", self.measure: "merit"}
            if len({row["cost"] for row in rows}) > 1:
                charts.append(
                    self.chart(
                        f"{kind} against {self.measure}",
                        [*rows, *front],
                        columns,
                        x=kind,
                        y=self.measure,
                        mark="point",
                        log="xy" if _is_wide(rows, "merit") else "x",
                        names=[*self.names, FRONT],
                        joined=(FRONT,),
                    )
                )
        return Figure(
            "Costs",
            charts,
            note="A point is a configuration, averaged over orders and seeds: the best 16 of each"
            " learner, and the Pareto front, on which nothing is better in both. Time is that of"
            " computing, without reading; other runs may have shared the pass and the machine.",
        )

    def regret(self) -> Figure:
        """Regret of the best configurations, beside its bound where there is one."""
        reasons, theorems = dict[str, None](), dict[str, None]()
        points, table = list[Row](), list[list[Any]]()
        params = {
            (row["stream"], row["learner"]): row for rows in self.best.values() for row in rows
        }
        for row in self.rows("regrets"):
            manifest, how = self._read(row["stream"])
            found = list[Row]()
            reading = (
                (
                    how["data"] > 1,
                    "a bound is for one dataset, and this stream has several data seeds",
                ),
                (manifest is None, "the dataset is no longer in the store"),
                (
                    how["max_rows"] and how["order"] != AS_STORED,
                    "the first rows of a shuffle differ from seed to seed",
                ),
            )
            why = next((words for applies, words in reading if applies), None)
            if why is None:
                why, found = self._bounded(params[row["stream"], row["learner"]], how)
            end = found[-1] if found else None
            if why:
                reasons[why] = None
            else:
                theorems[f"{row['learner']}: {THEOREMS[row['learner']]}"] = None
                points += found if how["order"] == AS_STORED else []
            if row["regret"] is not None or end:
                at_end = (end["regret"], end["bound"]) if end else (None, None)
                table.append([*(row[name] for name in REGRETS), *at_end])
        columns = {"stream": "stream", "learner": "learner", "round t": "t", "regret": "value"}
        lines = [
            {**one, "value": one[kind], "learner": one["learner"] + said}
            for kind, said in (("regret", ""), ("bound", ", bound"))
            for one in points
        ]
        names = [name + said for said in ("", ", bound") for name in self.names]
        how = {"x": "round t", "y": "regret", "log": "xy", "names": names}
        chart = self.chart("Regret and its bound", lines, columns, **how)
        note = (
            "Regret is the cumulative squared loss above that of the best linear predictor in"
            " hindsight, which may predict beyond the clip."
        )
        if theorems:
            note += (
                f"\nBound, computed from the rows: {'; '.join(theorems)}. It is of the regret"
                " against the best function in the learner's own space, shrunk into the clip, which"
                " the chart and the last two columns have."
            )
        note += f"\nNo bound: {'; '.join(reasons)}." if reasons else ""
        heads = ["stream", "learner", "regret against the best linear predictor", "std"]
        heads += ["its largest prediction", "regret against the bound's competitor", "bound"]
        return Figure("Regret", [chart] * bool(lines), (), heads, table, note)

    @cached_property
    def _streams_read(self) -> dict[str, list[Row]]:
        return grouped(self.views.rows("FROM streams_read"), _stream)

    def _read(self, stream: str) -> tuple[Manifest | None, Row]:
        """The manifest of a stream's first dataset that the store has, and how it is read."""
        rows = self._streams_read[stream]
        there = [row for row in rows if row["dataset_hash"] in self.manifests]
        how = (there or rows)[0]
        return self.manifests.get(how["dataset_hash"]), how

    def _bounded(self, best: Row, how: Row) -> tuple[str | None, list[Row]]:
        """Why there is no bound, or the regret and its bound at some rounds, and at the end."""
        learner, params = best["learner"], json.loads(best["params"])
        why = why_not(learner, params, how["rounds"])
        if why or how["multiclass"]:
            return why or f"{learner}: it is computed here for one label", []
        of_runs = grouped(
            self.views.rows(
                "SELECT t, cumulative_loss AS loss FROM curves_drawn WHERE run_id IN"
                " (SELECT unnest(?)) ORDER BY t, run_id",
                [best["run_ids"]],
            ),
            lambda row: row["t"],
        )
        rounds = sorted(of_runs)
        kept = [t for t in rounds[::-1][::EVERY] if t >= 10][::-1] or rounds[-1:]
        kept = kept if how["order"] == AS_STORED else rounds[-1:]
        stream = Stream(
            *(how["dataset"], how["dataset_hash"]),
            **{key: how[key] for key in ("positive_class", "max_rows")},
        )
        bound = bound_of(self.views.store, stream, learner, params, kept) if kept else None
        if bound is None:
            return f"{learner}: a label is beyond the clip", []
        return None, [
            {
                "stream": best["stream"],
                "learner": learner,
                "t": t,
                "regret": mean(row["loss"] - competitor for row in of_runs[t]),
                "bound": most,
            }
            for t, competitor, most in zip(bound.t, bound.competitor, bound.bound, strict=True)
        ]


def has_errors(row: Row) -> bool:
    """Whether a configuration is compared by its error rate, and not by its mean loss."""
    return row["error_rate_mean"] is not None


def judged(rows: Sequence[Row]) -> list[Row]:
    """A stream's best configurations without `Constant`, the best learner first."""
    return [row for row in rows if row["learner"] != CONSTANT]


def _placed(value: Any) -> tuple[float | None, str | None]:
    """A parameter's value as a number, or as a word."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        return float(value), None
    return None, str(value).lower() if isinstance(value, bool) else str(value)


def _is_wide(rows: Sequence[Row], name: str) -> bool:
    """Whether values need a logarithmic axis on some stream."""
    by_stream = grouped(rows, _stream).values()
    return any(is_wide([row[name] for row in found]) for found in by_stream)
