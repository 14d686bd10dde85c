"""Drawing: plots as SVG text, and the figure of a report that they belong to.

The SVG is written here, and not by a plotting library, because a report has a hundred plots: they are made in a second, take a few
kilobytes each, and their colours are the page's: text and axes have the page's colour, series that of CSS variables, so that the same plot
is readable on a light page, on a dark one, and on paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from flows.figures.axes import Axis, Scale, tick_text

Claim = tuple[str, str, str, bool | None]  # what a paper says, by which criterion, what came out; None holds for what it does not say
Style = tuple[str, str, str]  # colour, marker ("" for none), dash ("" for points that are not joined)

# Okabe and Ito's palette, told apart by readers who do not see all colours; markers and dashes say the same again. The values are what a
# plot has outside of a page of ours, whose templates/style.css has those for light and dark.
COLOURS = {
    "blue": "#0072b2",
    "vermilion": "#c04f00",
    "green": "#00805d",
    "black": "currentColor",
    "purple": "#b0558a",
    "orange": "#a86f00",
    "sky": "#2a84b8",
    "grey": "#767676",
}
MARKERS = ("o", "^", "s", "v", "D", "x", "P")
DASHES = {"-": "", "--": "7 4", ":": "2 3", "-.": "8 3 2 3"}
WIDTH, PLOT_HEIGHT, LEFT, RIGHT, TOP, BELOW, ROW = 480.0, 260.0, 72.0, 14.0, 12.0, 50.0, 21.0
SIZE, CHARACTER = 14.0, 7.4  # of the text; a character of it is about so wide
MOST_MARKERS = 14  # on one line
R = 4.2  # of a marker


@dataclass(frozen=True)
class Drawing:
    """A plot: SVG text, and what it shows in words."""

    svg: str
    alt: str


@dataclass(frozen=True)
class Figure:
    """Plots, the claims that they test (claim, criterion, outcome, holds), the numbers behind them, and a note on how to read them and
    what is missing (a line is a paragraph). `opened`: the report shows the numbers without being asked. Numbers in `rows` are whole
    numbers, floats or text; None is shown as –."""

    title: str
    drawings: Sequence[Drawing]
    claims: Sequence[Claim]
    columns: list[str]
    rows: list[list[Any]]
    note: str
    opened: bool = False
    flags: list[str] = field(default_factory=list)  # what a reader must not overlook


@dataclass(frozen=True)
class Series:
    """Points in the order of x. `low` and `high` make a band. `ringed`: the places of points that get a ring. `labels` names points,
    each once in a plot. A series with `legend` False is drawn and not listed."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    ringed: Sequence[int] = ()
    labels: Sequence[str] = ()
    legend: bool = True


def style_of(number: int) -> Style:
    """A colour, marker and dash for the number-th series of a plot; no two of the first 49 are alike."""
    names = [name for name in COLOURS if name != "grey"]
    return names[number % 7], MARKERS[(number + number // 7) % 7], list(DASHES)[(number + number // 7) % 4]


def plot(
    series: Sequence[Series],
    styles: Mapping[str, Style],
    x: Axis,
    y: Axis,
    alt: str,
    title: str = "",
    square: bool = False,
) -> Drawing:
    """The series in one plot, with a legend below. `square`: both axes have one scale, and the diagonal is drawn."""
    xs = [value for one in series for value in one.x]
    ys = [value for one in series for value in (*one.y, *(one.low or ()), *(one.high or ()))]
    across, up = (x.over([*xs, *ys]),) * 2 if square else (x.over(xs), y.over(ys))
    top = TOP + (24 if title else 0)
    canvas = _Canvas(across, up, top, WIDTH - LEFT - RIGHT if square else PLOT_HEIGHT)
    parts = [f'<text x="{LEFT:g}" y="18" font-weight="600">{escape(title)}</text>'] if title else []
    parts += canvas.frame(x, y)
    if square:
        parts.append(f'<path d="{canvas.path([(across.low, across.low), (across.high, across.high)], True)}" {_LINE} stroke-opacity=".5"/>')
    parts += _joined_by_name(canvas, series)
    for number, one in enumerate(series):
        parts += canvas.series(one, styles[one.name], number)
    parts += _names_of_points(canvas, series)
    legend, height = _legend([one.name for one in series if one.legend], styles, canvas.bottom + BELOW + 6)
    text = "\n".join(parts + legend)
    return Drawing(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{escape(alt)}" '
        f'font-family="system-ui, sans-serif" font-size="{SIZE:g}" fill="currentColor">\n{text}\n</svg>',
        alt,
    )


_LINE = 'fill="none" stroke="currentColor"'


@dataclass(frozen=True)
class _Canvas:
    """Where the values of two scales lie in the picture."""

    across: Scale
    up: Scale
    top: float
    height: float

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The picture's coordinates of a point."""
        return LEFT + (WIDTH - LEFT - RIGHT) * self.across.at(x), self.bottom - self.height * self.up.at(y)

    def shows(self, x: float, y: float) -> bool:
        """Whether there is a place for the point."""
        return all(math.isfinite(v) and (v > 0 or not scale.log) for v, scale in ((x, self.across), (y, self.up)))

    def path(self, points: Iterable[tuple[float, float]], placed: bool = False) -> str:
        """The path through points; broken where one cannot be shown. `placed`: they are in the scales' own coordinates."""
        text, pen = [], "M"
        for x, y in points:
            if placed:
                where = self.at(10**x, 10**y) if self.across.log else self.at(x, y)
            elif self.shows(x, y):
                where = self.at(x, y)
            else:
                pen = "M"
                continue
            text.append(f"{pen}{where[0]:.1f} {where[1]:.1f}")
            pen = "L"
        return "".join(text)

    def frame(self, x: Axis, y: Axis) -> list[str]:
        """The axes with their ticks, labels and a faint grid."""
        right = WIDTH - RIGHT
        grid, marks, texts = [], [f"M{LEFT:g} {self.top:g}V{self.bottom:g}H{right:g}"], []
        for tick in self.across.ticks():
            place = LEFT + (right - LEFT) * self.across.at(tick)
            grid.append(f"M{place:.1f} {self.top:g}V{self.bottom:g}")
            marks.append(f"M{place:.1f} {self.bottom:g}v5")
            texts.append(f'<text x="{place:.1f}" y="{self.bottom + 20:g}" text-anchor="middle">{tick_text(tick)}</text>')
        for tick in self.up.ticks():
            place = self.bottom - self.height * self.up.at(tick)
            grid.append(f"M{LEFT:g} {place:.1f}H{right:g}")
            marks.append(f"M{LEFT:g} {place:.1f}h-5")
            texts.append(f'<text x="{LEFT - 8:g}" y="{place + 5:.1f}" text-anchor="end">{tick_text(tick)}</text>')
        middle = self.top + self.height / 2
        texts.append(f'<text x="{(LEFT + right) / 2:g}" y="{self.bottom + 42:g}" text-anchor="middle">{escape(x.label)}</text>')
        texts.append(f'<text transform="translate(15 {middle:g}) rotate(-90)" text-anchor="middle">{escape(y.label)}</text>')
        return [f'<path d="{"".join(grid)}" {_LINE} stroke-opacity=".13"/>', f'<path d="{"".join(marks)}" {_LINE}/>', *texts]

    def series(self, one: Series, style: Style, number: int) -> list[str]:
        """A band, a line, its markers and rings."""
        colour, marker, dash = style
        parts = []
        if one.low is not None and one.high is not None:
            there = [
                (a, low, high) for a, low, high in zip(one.x, one.low, one.high, strict=True) if self.shows(a, low) and self.shows(a, high)
            ]
            if len(there) > 1:
                edge = self.path([*((a, high) for a, _, high in there), *((a, low) for a, low, _ in reversed(there))])
                parts.append(f'<path d="{edge}Z" fill="currentColor" fill-opacity=".16"/>')
        points = list(zip(one.x, one.y, strict=True))
        if dash:
            dashes = f' stroke-dasharray="{DASHES[dash]}"' if DASHES[dash] else ""
            parts.append(f'<path d="{self.path(points)}" {_LINE} stroke-width="2"{dashes}/>')
        every = math.ceil(len(points) / MOST_MARKERS) if dash else 1
        kept = [p for k, p in enumerate(points) if (k - number) % every == 0 and self.shows(*p)]
        if marker and kept:
            parts.append(_markers(marker, [self.at(*p) for p in kept]))
        rings = [self.at(*points[k]) for k in one.ringed if self.shows(*points[k])]
        if rings:
            parts.append(f'<path d="{"".join(_circle(a, b, 2 * R) for a, b in rings)}" {_LINE} stroke-width="2"/>')
        return [f'<g style="color:{_colour(colour)}">', *parts, "</g>"]


def _colour(name: str) -> str:
    return "currentColor" if name == "black" else f"var(--{name},{COLOURS[name]})"


def _circle(x: float, y: float, r: float) -> str:
    return f"M{x - r:.1f} {y:.1f}a{r:g} {r:g} 0 1 0 {2 * r:g} 0a{r:g} {r:g} 0 1 0 {-2 * r:g} 0"


def _markers(marker: str, at: Sequence[tuple[float, float]]) -> str:
    """All markers of a series as one path."""
    shapes = {
        "^": f"m0 {-R:g}l{R:g} {1.8 * R:g}h{-2 * R:g}z",
        "v": f"m0 {R:g}l{R:g} {-1.8 * R:g}h{-2 * R:g}z",
        "s": f"m{-0.9 * R:g} {-0.9 * R:g}h{1.8 * R:g}v{1.8 * R:g}h{-1.8 * R:g}z",
        "D": f"m0 {-1.2 * R:g}l{1.2 * R:g} {1.2 * R:g}l{-1.2 * R:g} {1.2 * R:g}l{-1.2 * R:g} {-1.2 * R:g}z",
        "x": f"m{-R:g} {-R:g}l{2 * R:g} {2 * R:g}m0 {-2 * R:g}l{-2 * R:g} {2 * R:g}",
        "P": f"m{-R:g} 0h{2 * R:g}m{-R:g} {-R:g}v{2 * R:g}",
    }
    path = "".join(_circle(x, y, 0.9 * R) if marker == "o" else f"M{x:.1f} {y:.1f}{shapes[marker]}" for x, y in at)
    return f'<path d="{path}" {_LINE} stroke-width="2"/>' if marker in "xP" else f'<path d="{path}" fill="currentColor"/>'


def _legend(names: Sequence[str], styles: Mapping[str, Style], top: float) -> tuple[list[str], float]:
    """The legend in as many columns as its names allow, and where the picture ends."""
    longest = max((len(name) for name in names), default=0)
    columns = max(1, min(3, int((WIDTH - 10) // (44 + CHARACTER * longest))))
    parts = []
    for number, name in enumerate(names):
        colour, marker, dash = styles[name]
        x, y = 8 + (number % columns) * (WIDTH - 10) / columns, top + (number // columns) * ROW + 10
        dashes = f' stroke-dasharray="{DASHES[dash]}"' if dash and DASHES[dash] else ""
        line = f'<path d="M{x:.1f} {y:g}h28" {_LINE} stroke-width="2"{dashes}/>' if dash else ""
        mark = _markers(marker, [(x + 14, y)]) if marker else ""
        parts.append(f'<g style="color:{_colour(colour)}">{line}{mark}</g><text x="{x + 36:.1f}" y="{y + 5:g}">{escape(name)}</text>')
    return parts, top + ROW * math.ceil(len(names) / columns)


def _by_label(canvas: _Canvas, series: Sequence[Series]) -> dict[str, list[tuple[float, float]]]:
    groups: dict[str, list[tuple[float, float]]] = {}
    for one in series:
        for label, x, y in zip(one.labels, one.x, one.y, strict=False):
            if canvas.shows(x, y):
                groups.setdefault(label, []).append(canvas.at(x, y))
    return groups


def _joined_by_name(canvas: _Canvas, series: Sequence[Series]) -> list[str]:
    """Thin lines between the points of one name."""
    groups = [group for group in _by_label(canvas, series).values() if len(group) > 1]
    path = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in group) for group in groups)
    return [f'<path d="{path}" {_LINE} stroke-opacity=".35"/>'] if path else []


def _names_of_points(canvas: _Canvas, series: Sequence[Series]) -> list[str]:
    """Each name near its last point, at the first place that is free; at the first place if none is."""
    size = 11.0
    groups = _by_label(canvas, series)
    taken = [(x - 4, y - 4, x + 4, y + 4) for group in groups.values() for x, y in group]
    parts = []
    for name, group in groups.items():
        x, y = group[-1]
        width, height = 0.56 * size * len(name), 1.1 * size
        places = [
            (dx, dy) for gap in (6, 16, 28, 40, 54, 70) for dy in (-height / 2, gap - 2, -gap - height + 2) for dx in (gap, -gap - width)
        ]
        boxes = [(x + dx, y + dy, x + dx + width, y + dy + height) for dx, dy in places]
        inside = [b for b in boxes if b[0] > LEFT and b[2] < WIDTH and b[1] > 0 and b[3] < canvas.bottom]
        box = next((b for b in inside if not any(_overlap(b, t) for t in taken)), (inside or boxes)[0])
        taken.append(box)
        parts.append(f'<text x="{box[0]:.1f}" y="{box[3] - 2:.1f}" font-size="{size:g}">{escape(name)}</text>')
    return parts


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def named_points(name: str, points: Mapping[str, tuple[float, float]]) -> Series:
    """Points that are not joined, each with its name."""
    return Series(name, [x for x, _ in points.values()], [y for _, y in points.values()], labels=list(points))


def over_seeds(name: str, x: Sequence[float], members: Mapping[int, Sequence[float]]) -> Series:
    """The mean over members (seeds) at each x, with a band from the least to the largest of them."""
    columns = list(zip(*members.values(), strict=True))
    banded = len(members) > 1
    return Series(
        name,
        x,
        [sum(c) / len(c) for c in columns],
        [min(c) for c in columns] if banded else None,
        [max(c) for c in columns] if banded else None,
    )
