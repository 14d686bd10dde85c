"""Charts, declared as data and encodings; Vega-Lite draws them, on pages and as files.

A page needs no other file: it carries the library, which runs no text as code (`ast`), so that its
security policy forbids that. vl-convert has the library, and draws without a browser.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

from koco_stream.io.cache import private_folder
from koco_stream.io.files import json_text, write_text

# Okabe and Ito's palette, safe for colour-blind readers; style.css has the colours of dark pages.
COLOURS = [
    f"var(--{name}, {value})"
    for name, value in (
        *(("blue", "#0072b2"), ("vermilion", "#c04f00"), ("green", "#00805d")),
        *(("purple", "#b0558a"), ("orange", "#a86f00"), ("sky", "#2a84b8"), ("grey", "#767676")),
    )
]
SHAPES = ("circle", "triangle-up", "square", "triangle-down", "diamond", "cross")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
INK = "currentColor"
HEIGHT, WIDTH, STEP = 280, 640, 24  # pixels; of a file the width, of a row of a chart of names
CHARACTER, HANDLE = 7, 46  # widths of a character and of the mark beside a name in a legend
WIDE = 20.0  # values that differ by this factor are drawn on a logarithmic axis
MOST_FILES = 24  # of a chart, for as many values of what a reader chooses
CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **{f"{part}Color": INK for part in ("label", "title", "domain", "tick", "grid")},
        **{"gridOpacity": 0.13, "labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": 400},
        **{"labelLimit": 190, "labelOverlap": "greedy", "labelFlush": False},
    },
    "legend": {
        **{"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "labelLimit": 300},
        **{"orient": "bottom", "title": None, "symbolOpacity": 1, "symbolStrokeWidth": 2},
    },
}
Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Chart:
    """A chart: rows, and which of their columns are drawn how.

    Attributes
    ----------
    title, alt : str
        Its title, and what it shows in words, with the numbers at the ends.
    columns, rows : sequence
        The data, all of which the pointer shows.
    x, y, series : str
        The columns of the axes, and of what has a colour and is hidden and shown.
    mark : str
        "line", or "point" for points that are not joined.
    band : tuple of str
        Two columns, of the ends of a range around each point.
    log : str
        The axes that are logarithmic: "x", "y", "xy" or neither.
    picks : sequence of str
        Columns of which a reader chooses one value at a time.
    names : sequence of str
        The series that have colours in turn, in all charts of a page the same.
    joined : sequence of str
        Of points, the series that are joined all the same.
    marks : tuple
        Columns and rows of vertical lines, at their values of `x`.
    diagonal : bool
        Whether both axes are alike, and where they are equal is a line.
    """

    title: str
    alt: str
    columns: Sequence[str]
    rows: Rows
    x: str
    y: str
    series: str = "learner"
    mark: str = "line"
    band: tuple[str, ...] = ()
    log: str = ""
    picks: Sequence[str] = ()
    names: Sequence[str] = ()
    joined: Sequence[str] = ()
    marks: tuple[Sequence[str], Rows] = ((), ())
    diagonal: bool = False

    def values(self, column: str) -> list[Any]:
        """The values of a column that are there, each once, in their order."""
        place = list(self.columns).index(column)
        return [one for one in dict.fromkeys(row[place] for row in self.rows) if one is not None]

    def spec(self, chosen: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The chart in Vega-Lite's words; with values `chosen` for its picks, none can be chosen.

        Its data are named `rows`, and are not in it.
        """
        present = self.values(self.series)
        series = json_text(self.series)
        params, filters = [], []
        for k, name in enumerate(self.picks):
            options = self.values(name)
            value = (chosen or {}).get(name, options[0] if options else None)
            bind = {"input": "select", "options": options, "name": f"{name} "}
            params.append({"name": f"pick{k}", "value": value, "bind": bind})
            filters.append({"filter": f"datum[{json_text(name)}] == pick{k}"})
        own = [{"filter": f"only == 'all' || datum[{series}] == only"}]
        bind = {"input": "select", "options": ["all", *present], "name": f"{self.series} "}
        params.append({"name": "only", "value": "all", "bind": bind})
        if chosen is not None:
            params = [{key: one[key] for key in ("name", "value")} for one in params]
        params = [
            one if len(one.get("bind", {}).get("options", ())) != 1 else {**one, "bind": None}
            for one in params
        ]
        names = list(self.names) or present
        drawn = {
            "color": self._scaled(names, present, [COLOURS[k % 7] for k in range(len(names))]),
            "x": self._axis("x", self.x),
            "y": self._axis("y", self.y),
        }
        tooltip = [self._told(name) for name in self.columns if name not in self.picks]
        near = {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout"}
        zoom = {
            "type": "interval",
            "zoom": "wheel![event.ctrlKey || event.shiftKey]",
            "translate": "[pointerdown[event.pointerType == 'mouse'], window:pointerup]"
            " > window:pointermove!",
        }
        shapes = [SHAPES[(k + k // 7) % 6] for k in range(len(names))]
        dashes = [DASHES[k // 7 % 4] for k in range(len(names))]
        is_line, named = self.mark == "line", self._is_named(self.y)
        layers: list[dict[str, Any]] = []
        if self.band:
            low, high = ("x", "x2") if named else ("y", "y2")
            kind = (
                {"type": "rule", "strokeWidth": 2} if named else {"type": "area", "opacity": 0.16}
            )
            ends = {low: {**drawn[low], "field": self.band[0]}, high: {"field": self.band[1]}}
            layers.append({"mark": kind, "encoding": ends})
        if is_line or self.joined:
            line: dict[str, Any] = {"mark": {"type": "line", "clip": True, "strokeWidth": 2}}
            dashed = self._scaled(names, present, dashes)
            line["encoding"] = {"strokeDash": dashed, "order": {"field": self.x}}
            if not is_line:
                line["transform"] = [{"filter": {"field": self.series, "oneOf": self.joined}}]
                line["encoding"]["strokeDash"] = {"value": [6, 3]}
            layers.append(line)
        layers.append(
            {
                "mark": {"type": "point", "filled": True, "clip": True, "opacity": 1},
                "encoding": {
                    "tooltip": tooltip,
                    "shape": self._scaled(names, present, shapes),
                    "size": {
                        "condition": {"param": "near", "value": 140, "empty": False},
                        "value": 14 if is_line else 60,
                    },
                },
                "params": [
                    {"name": "near", "select": near},
                    *([] if named else [{"name": "zoom", "select": zoom, "bind": "scales"}]),
                ],
            }
        )
        beside: list[dict[str, Any]] = []
        rule = {"mark": {"type": "rule", "strokeDash": [2, 3], "color": INK, "opacity": 0.5}}
        if self.marks[1]:
            at = {**self._axis("x", self.x), "title": None}
            own_picks = [
                f for name, f in zip(self.picks, filters, strict=True) if name in self.marks[0]
            ]
            beside.append(
                {
                    **rule,
                    "data": data_of(*self.marks),
                    "transform": own_picks,
                    "encoding": {"x": at},
                }
            )
        if self.diagonal:
            numbers = [v for name in (self.x, self.y) for v in self.values(name) if v > 0]
            ends = [[end, end] for end in (min(numbers, default=1), max(numbers, default=1))]
            axes = {"x": drawn["x"], "y": drawn["y"]}
            line = {"type": "line", "color": INK, "opacity": 0.4, "strokeWidth": 1}
            beside.append({"mark": line, "data": data_of((self.x, self.y), ends), "encoding": axes})
        rows = len(self.values(self.y))
        return {
            "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
            "description": self.alt,
            "width": "container",
            "height": max(120, STEP * rows) if named else HEIGHT,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "config": CONFIG,
            # how wide the names of a legend are, for the number of its columns
            "usermeta": {"name": HANDLE + CHARACTER * max(map(len, present), default=0)},
            "data": {"name": "rows"},
            "params": params,
            "layer": [*beside, {"transform": [*filters, *own], "encoding": drawn, "layer": layers}],
        }

    def files(self, most: int = MOST_FILES) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield what a file of it shows in words, and its declaration, for each of its picks."""
        every = product(*(self.values(name) for name in self.picks))
        for values in islice(every, most):
            spec = self.spec(dict(zip(self.picks, values, strict=True)))
            yield ", ".join(map(str, values)), {**spec, "data": data_of(self.columns, self.rows)}

    def on_page(self) -> str:
        """JSON of its declaration, its columns and its rows, with six digits of a float."""
        short = [[float(f"{v:.6g}") if isinstance(v, float) else v for v in r] for r in self.rows]
        return json_text([self.spec(), self.columns, short]).replace("<", "\\u003c")

    def _is_named(self, column: str) -> bool:
        """Whether a column has texts."""
        return any(isinstance(one, str) for one in self.values(column))

    def _scaled(
        self, names: Sequence[str], present: Sequence[str], values: Sequence[Any]
    ) -> dict[str, Any]:
        """The encoding of the series by values, with a legend of those that are present."""
        legend = {"values": present}
        scale = {"domain": list(names), "range": list(values)}
        shown = legend if len(present) > 1 or not self.picks else None
        return {"field": self.series, "type": "nominal", "scale": scale, "legend": shown}

    def _axis(self, which: str, column: str) -> dict[str, Any]:
        """The encoding of an axis."""
        if self._is_named(column):
            return {"field": column, "type": "nominal", "sort": None, "title": None}
        numbers = self.values(column)
        log = which in self.log and min(numbers, default=0) > 0
        scale = {"type": "log", "nice": False} if log else {"zero": False}
        if self.diagonal:
            both = [v for name in (self.x, self.y) for v in self.values(name) if v > 0]
            scale |= {"domain": [min(both, default=0.1) / 1.2, 1.2 * max(both, default=1)]}
        return {
            **{"field": column, "type": "quantitative", "title": column, "scale": scale},
            "axis": {"tickCount": 6, "format": ",.6~g"},
        }

    def _told(self, name: str) -> dict[str, Any]:
        """The encoding of a column under the pointer."""
        if self._is_named(name):
            return {"field": name, "type": "nominal"}
        return {"field": name, "type": "quantitative", "format": ".4~g"}


def data_of(columns: Sequence[str], rows: Rows) -> dict[str, Any]:
    """Rows as Vega-Lite reads them."""
    return {"values": [dict(zip(columns, row, strict=True)) for row in rows]}


def is_wide(values: Sequence[float]) -> bool:
    """Whether values are positive, and of different sizes."""
    return bool(values) and 0 < WIDE * min(values) < max(values)


def drawn(spec: Mapping[str, Any], kind: str = "svg") -> Any:
    """A declared chart as SVG text or as the bytes of a PNG, on white, in a file's width."""
    import vl_convert

    columns = {"columns": max(1, WIDTH // spec["usermeta"]["name"])}
    config = {**CONFIG, "legend": {**CONFIG["legend"], **columns}}
    whole = json.dumps({**spec, "width": WIDTH, "config": config})
    plain = re.sub(r"var\(--\w+, (#\w+)\)", r"\1", whole)
    plain = plain.replace(INK, "#1b1b1b").replace("system-ui, ", "")
    if kind == "png":
        return vl_convert.vegalite_to_png(plain, scale=2)
    return vl_convert.vegalite_to_svg(plain)


def library() -> str:
    """The script of Vega, Vega-Lite and Vega-Embed; bundled once, and then cached."""
    import vl_convert

    path = Path(private_folder("charts")) / f"vega-{vl_convert.__version__}.js"
    if not path.is_file():
        write_text(path, vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    return path.read_text(encoding="utf-8")
