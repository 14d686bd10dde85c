"""Charts, declared as data and encodings; Vega-Lite draws them, on pages and as files."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import islice, product
from typing import Any

from koco_stream.io.cache import computed_once
from koco_stream.io.files import json_text

# Okabe and Ito's palette, safe for colour-blind readers; style.css has the colours of dark pages.
COLOURS = [
    f"var(--{name}, {value})"
    for name, value in {
        "blue": "#0072b2",
        "vermilion": "#c04f00",
        "green": "#00805d",
        "purple": "#b0558a",
        "orange": "#a86f00",
        "sky": "#2a84b8",
        "grey": "#767676",
    }.items()
]
Spec = dict[str, Any]
Row = dict[str, Any]
INK = "currentColor"
HEIGHT, WIDTH, STEP = 280, 640, 24  # pixels; of a file the width, of a row of a chart of names
CHARACTER, HANDLE = 7, 46  # widths of a character and of the mark beside a name in a legend
MOST_FILES = 24  # of a chart, for as many values of what a reader chooses
CONFIG: Spec = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **{f"{part}Color": INK for part in ("label", "title", "domain", "tick", "grid")},
        "gridOpacity": 0.13,
        "labelFontSize": 12,
        "titleFontSize": 13,
        "titleFontWeight": 400,
        "labelLimit": 190,
        "labelOverlap": "greedy",
        "labelSeparation": 5,
        "labelFlush": False,
    },
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 12,
        "labelLimit": 300,
        "orient": "bottom",
        "title": None,
        "symbolOpacity": 1,
        "symbolStrokeWidth": 2,
    },
}
# what tells the series apart, by their numbers
SCALES: dict[str, Callable[[int], Any]] = {
    "color": lambda k: COLOURS[k % 7],
    "shape": lambda k: ("circle", "triangle-up", "square", "triangle-down", "diamond", "cross")[
        (k + k // 7) % 6
    ],
    "strokeDash": lambda k: ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])[k // 7 % 4],
}
MARKS: dict[str, Spec] = {
    "band": {"type": "area", "opacity": 0.16},
    "range": {"type": "rule", "strokeWidth": 2},
    "line": {"type": "line", "clip": True, "strokeWidth": 2},
    "point": {"type": "point", "filled": True, "clip": True, "opacity": 1, "aria": False},
    # what the pointer meets: larger than the point, and unseen
    "hit": {"type": "point", "filled": True, "clip": True, "opacity": 0, "size": 300},
    "change": {"type": "rule", "strokeDash": [2, 3], "color": INK, "opacity": 0.5},
    "diagonal": {"type": "line", "color": INK, "opacity": 0.4, "strokeWidth": 1},
}
NEAR: Spec = {
    "name": "near",
    "select": {"type": "point", "on": "pointerover", "clear": "pointerout"},
}
# a page is scrolled over charts: by wheel, and by touch
ZOOM: Spec = {
    "name": "zoom",
    "bind": "scales",
    "select": {
        "type": "interval",
        "zoom": "wheel![event.ctrlKey || event.shiftKey]",
        "translate": "[pointerdown[event.pointerType == 'mouse'], window:pointerup]"
        " > window:pointermove!",
    },
}


@dataclass(frozen=True)
class Chart:
    """A chart: rows, and which of their columns are drawn how.

    `series` has a colour. Points are joined if `mark` is "line", or by the series `joined`. A
    reader chooses a value of each of the columns `picks`. `names` are the series that have colours
    in turn. `marks` are rows with a value of `x`, where vertical lines are. On the `diagonal` both
    axes are equal.
    """

    title: str
    alt: str
    rows: Sequence[Row]
    x: str
    y: str
    series: str = "learner"
    mark: str = "line"
    band: Sequence[str] = ()
    log: str = ""
    picks: Sequence[str] = ()
    names: Sequence[str] = ()
    joined: Sequence[str] = ()
    marks: Sequence[Row] = ()
    diagonal: bool = False

    def values(self, column: str) -> list[Any]:
        return [one for one in dict.fromkeys(row[column] for row in self.rows) if one is not None]

    def spec(self, chosen: Mapping[str, Any] | None = None) -> Spec:
        """The chart in Vega-Lite's words, without its rows; with values `chosen` for its picks."""
        present = self.values(self.series)
        picked = {name: self.values(name) for name in self.picks}
        filters = {name: f"datum.{self.field(name)} == pick{k}" for k, name in enumerate(picked)}
        params = [
            _param(f"pick{k}", name, values, (chosen or {name: values[0]})[name], chosen is None)
            for k, (name, values) in enumerate(picked.items())
        ]
        params.append(_param("only", self.series, ["all", *present], "all", chosen is None))
        axes = {"x": self._axis("x", self.x), "y": self._axis("y", self.y)}
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "description": self.alt,
            "width": "container",
            "height": max(120, STEP * len(self.values(self.y))) if self.is_named else HEIGHT,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "config": CONFIG,
            # how wide the names of a legend are, for the number of its columns
            "usermeta": {"name": HANDLE + CHARACTER * max(map(len, present), default=0)},
            "data": {"name": "rows"},
            "params": params,
            "layer": [
                *self._beside(axes, filters),
                {
                    "transform": [
                        *({"filter": one} for one in filters.values()),
                        {"filter": f"only == 'all' || datum.{self.field(self.series)} == only"},
                    ],
                    "layer": list(self._layers(axes, present)),
                },
            ],
        }

    def _layers(self, axes: Spec, present: Sequence[str]) -> Iterator[Spec]:
        names = self.names or present
        legend = {"values": present, "title": None} if len(present) > 1 or not self.picks else None
        scaled = {
            kind: {
                "field": self.field(self.series),
                "type": "nominal",
                "legend": legend,
                "title": self.series,
                "scale": {"domain": names, "range": [value(k) for k in range(len(names))]},
            }
            for kind, value in SCALES.items()
        }
        shared = {**axes, "color": scaled["color"]}
        is_line = self.mark == "line"
        if self.band:
            way = "x" if self.is_named else "y"
            ends = dict(zip((way, f"{way}2"), map(self.field, self.band), strict=True))
            where = {end: {**axes.get(end, {}), "field": field} for end, field in ends.items()}
            yield {
                "mark": MARKS["range" if self.is_named else "band"],
                "encoding": {**shared, **where},
            }
        if is_line or self.joined:
            dash = scaled["strokeDash"] if is_line else {"value": [6, 3]}
            of = {"field": self.field(self.series), "oneOf": self.joined or present}
            yield {
                "mark": MARKS["line"],
                "encoding": {**shared, "strokeDash": dash, "order": {"field": self.field(self.x)}},
                "transform": [{"filter": of}],
            }
        yield {
            "mark": MARKS["point"],
            "encoding": {
                **shared,
                "shape": scaled["shape"],
                "size": {
                    "condition": {"param": "near", "value": 140, "empty": False},
                    "value": 14 if is_line else 60,
                },
            },
        }
        tooltip = [
            {"field": self.field(name), "title": name, "type": "nominal"}
            for name in self.rows[0]
            if name not in self.picks
        ]
        yield {
            "mark": MARKS["hit"],
            "encoding": {**shared, "tooltip": tooltip},
            "params": [NEAR] if self.is_named else [NEAR, ZOOM],
        }

    def _beside(self, axes: Spec, filters: Mapping[str, str]) -> Iterator[Spec]:
        if self.marks:
            yield {
                "mark": MARKS["change"],
                "data": self._data(self.marks),
                "transform": [
                    {"filter": filters[name]} for name in filters if name in self.marks[0]
                ],
                "encoding": {"x": {**axes["x"], "title": None}},
            }
        if self.diagonal:
            both = [one for name in (self.x, self.y) for one in self.values(name) if one > 0]
            ends = [
                {self.x: end, self.y: end} for end in (min(both, default=1), max(both, default=1))
            ]
            yield {"mark": MARKS["diagonal"], "data": self._data(ends), "encoding": axes}

    def files(self, most: int = MOST_FILES) -> Iterator[tuple[str, Spec]]:
        every = product(*(self.values(name) for name in self.picks))
        for values in islice(every, most):
            spec = self.spec(dict(zip(self.picks, values, strict=True)))
            yield ", ".join(map(str, values)), {**spec, "data": self._data(self.rows)}

    def on_page(self) -> str:
        """Its declaration, columns and rows as JSON, with six digits of a float."""
        short = [
            [float(f"{one:.6g}") if isinstance(one, float) else one for one in row.values()]
            for row in self.rows
        ]
        return json_text([self.spec(), list(self.rows[0]), short]).replace("<", "\\u003c")

    @property
    def is_named(self) -> bool:
        """Whether its rows stand at names."""
        return any(isinstance(one, str) for one in self.values(self.y))

    def _axis(self, which: str, column: str) -> Spec:
        field = {"field": self.field(column)}
        if which == "y" and self.is_named:
            return {**field, "type": "nominal", "sort": None, "title": None}
        log = which in self.log and min(self.values(column), default=0) > 0
        scale = {"type": "log", "nice": False} if log else {"zero": False}
        return {
            **field,
            "type": "quantitative",
            "title": column,
            "scale": {**scale, "padding": 8},  # so that a point at an end is whole
            "axis": {"tickCount": 6, "format": ",.6~g"},
        }

    def field(self, column: str) -> str:
        """A name in the data that, unlike the column's own, need not be escaped."""
        return f"c{list(self.rows[0]).index(column)}"

    def _data(self, rows: Sequence[Row]) -> Spec:
        return {"values": [{self.field(name): row[name] for name in row} for row in rows]}


def _param(name: str, column: str, values: Sequence[Any], value: Any, free: bool) -> Spec:
    bind = {"input": "select", "options": values, "name": f"{column} "}
    several = free and len({*values} - {"all"}) > 1
    return {"name": name, "value": value, **({"bind": bind} if several else {})}


def drawn(spec: Spec, kind: str = "svg") -> Any:
    """A chart as SVG text or as the bytes of a PNG, on white, in a file's width."""
    import vl_convert

    legend = {**CONFIG["legend"], "columns": max(1, WIDTH // spec["usermeta"]["name"])}
    whole = json_text(
        {
            **spec,
            "width": WIDTH,
            "config": {**CONFIG, "background": "#ffffff", "font": "sans-serif", "legend": legend},
        }
    )
    plain = re.sub(r"var\(--\w+, (#\w+)\)", r"\1", whole).replace(INK, "#1b1b1b")
    return (
        vl_convert.vegalite_to_png(plain, scale=2)
        if kind == "png"
        else vl_convert.vegalite_to_svg(plain)
    )


def library() -> str:
    import vl_convert

    return computed_once(
        "charts",
        version("vl-convert-python"),
        partial(vl_convert.javascript_bundle, "window.vegaEmbed = vegaEmbed;"),
    )
