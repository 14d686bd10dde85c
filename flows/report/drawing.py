"""Plots as SVG text, and the figures of a report that contain them.

Matplotlib makes them, and `svg` adapts them to the page. No two plots of a page share an id.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flows.report.axes import Axis
from flows.report.svg import CLOUD, COLOURS, KEY, LINE, PART, adapted_to_page, measures, with_names
from flows.scores.means import means
from koco_stream.io.cache import private_folder
from koco_stream.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# colour, marker ("" for none), dash ("" for points that are not joined)
Style = tuple[str, str, str]

MARKERS = ("o", "^", "s", "v", "D", "x", "P")
DASHES = ("-", "--", ":", "-.")
# pixels, as all lengths here
WIDTH, PLOT_HEIGHT, LEFT_MARGIN, RIGHT_MARGIN, BELOW, ROW = 480.0, 260.0, 76.0, 26.0, 56.0, 21.0
PAGE_WIDTH, PAGE_HEIGHT = 960.0, 360.0  # of a plot as wide as the page
LABEL_HEIGHT, MOST_LABEL_WIDTH = 19.0, 300.0  # of names at the ends of lines
CHARACTER = 7.4  # approximate width of a character
HANDLE = 60.0  # width of a legend entry without its text
CLOUD_POINT = 5.0  # width of a small point
MOST_MARKERS = 14  # most markers on one line
STYLE_FILE = Path(__file__).parent.parent / "templates" / "plots.mplstyle"


class Claim(NamedTuple):
    """A claim of a paper, the criterion by which it is judged, our outcome, and whether it holds.

    `holds` is None for a remark, which is not judged.
    """

    claim: str
    criterion: str
    came_out: str
    holds: bool | None


class Flag(NamedTuple):
    """A warning for the reader in a sentence, and what it sums up.

    `link` is the id of the page's section with more on it.
    """

    words: str
    details: tuple[str, ...] = ()
    link: str = ""


def merged_flags(words: str, sentences: Sequence[str], link: str = "") -> list[Flag]:
    """Warnings as one: `words` with the `sentences` as details, or the only sentence itself."""
    if len(sentences) < 2:
        return [Flag(sentence, link=link) for sentence in sentences]
    return [Flag(words, tuple(sentences), link)]


@dataclass(frozen=True)
class Drawing:
    """A plot as SVG text, and its description in words.

    `narrow` is the same plot for pages that are too narrow for `svg`; it is empty if
    `svg` fits.
    """

    svg: str
    alt: str
    narrow: str = ""


@dataclass(frozen=True)
class Figure:
    """Plots with the claims that they test, a table of their numbers, and a note for the reader.

    Each line of `note` is a paragraph. With `opened`, the table is shown unfolded. Cells of `rows`
    are integers, floats or text; None is shown as –.
    """

    title: str
    drawings: Sequence[Drawing]
    claims: Sequence[Claim]
    columns: list[str]
    rows: list[list[Any]]
    note: str
    opened: bool = False
    flags: list[Flag] = field(default_factory=list)


@dataclass(frozen=True)
class Series:
    """Points of a plot by increasing x, with an optional band from `low` to `high`.

    `ringed` has the indices of points with a ring. `labels` names the points; a name is drawn once.
    `cloud` has more points (x, y), which are small.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    ringed: Sequence[int] = ()
    labels: Sequence[str] = ()
    cloud: Sequence[tuple[float, float]] = ()


def style_of(number: int) -> Style:
    """Colour, marker and dash of a plot's series by its number; the first 49 are distinct."""
    names = [name for name in COLOURS if name != "grey"]
    return (
        names[number % 7],
        MARKERS[(number + number // 7) % 7],
        DASHES[(number + number // 7) % 4],
    )


def import_matplotlib() -> None:
    """Import Matplotlib, which takes half a second, with its font cache in our cache folder."""
    os.environ.setdefault("MPLCONFIGDIR", str(private_folder("matplotlib")))
    import matplotlib.backends.backend_svg  # noqa: F401


def plot(
    series: Sequence[Series],
    styles: Mapping[str, Style] | None,
    x: Axis,
    y: Axis,
    alt: str,
    title: str = "",
    square: bool = False,
    marks: Sequence[float] = (),
    wide: bool = False,
) -> Drawing:
    """Draw series in one plot, with a legend below.

    A `wide` plot is as wide as the page, and has a narrow one for narrow pages. In a wide one,
    names stand at the ends of the lines instead of a legend, if they do not collide. `styles` maps
    names of series to styles; without it they come from `style_of`. `alt` describes the plot in
    words. With `square`, both axes have the same scale and the diagonal is drawn. At each x of
    `marks` there is a vertical line.
    """
    import_matplotlib()
    from matplotlib import style
    from matplotlib.figure import Figure as Picture

    if styles is None:
        styles = {one.name: style_of(number) for number, one in enumerate(series)}
    names = [one.name for one in series]
    longest = CHARACTER * max(map(len, names), default=0)
    width, up = (PAGE_WIDTH, PAGE_HEIGHT) if wide else (WIDTH, PLOT_HEIGHT)
    at_ends = wide and longest < MOST_LABEL_WIDTH and _ends_apart(series, y, up)
    columns = max(1, min(3 + 3 * wide, int(width // (HANDLE + longest))))
    across = width - LEFT_MARGIN - RIGHT_MARGIN - longest * at_ends
    below = BELOW + (0.0 if at_ends else ROW * math.ceil(len(names) / columns))
    up = across if square else up
    height = (36.0 if title else 12.0) + up + below
    # determines the SVG's ids: equal for the same plot, distinct otherwise
    salt = sha256(repr((series, x, y, alt, title, marks, wide)).encode()).hexdigest()
    with (
        style.context([STYLE_FILE, {"svg.hashsalt": salt}], after_reset=True),
        warnings.catch_warnings(),
    ):
        # the font that measures text may lack a glyph that the page's font has
        warnings.filterwarnings("ignore", "Glyph .* missing")
        picture, file = Picture((width / 72, height / 72), dpi=72), StringIO()
        axes = picture.add_axes(
            (LEFT_MARGIN / width, below / height, across / width, up / height),
            xlabel=x.label,
            ylabel=y.label,
        )
        axes.set(xscale="log" if x.log else "linear", yscale="log" if y.log else "linear")
        axes.set_title(title, loc="left")
        lines = [
            _draw(axes, one, styles[one.name], number, x, y) for number, one in enumerate(series)
        ]
        for mark in marks:
            axes.axvline(mark, color=COLOURS["grey"], linewidth=1, linestyle=":", zorder=0)
        _scale(axes, x, y, square, across)
        _name_points(axes, series, x, y)
        if at_ends:
            _name_ends(axes, series, styles, x, y)
        else:
            legend = picture.legend(lines, names, loc="lower left", ncols=columns)
            entries = zip(legend.legend_handles, legend.get_texts(), strict=True)
            for number, parts in enumerate(entries):
                for part in filter(None, parts):
                    part.set_gid(f"{KEY} {number}")
        picture.savefig(file, format="svg")
        ends = measures(axes, x, y, height)
    return Drawing(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"'
        f' aria-label="{escape(alt)}" font-family="system-ui, sans-serif" fill="currentColor"'
        f' stroke-linejoin="round" data-axes="{escape(ends)}">\n'
        + with_names(adapted_to_page(file.getvalue()), series),
        alt,
        plot(series, styles, x, y, alt, title, square, marks).svg if wide else "",
    )


def _draw(axes: Axes, one: Series, style: Style, number: int, x: Axis, y: Axis) -> Line2D:
    """Draw a series: a band, a line with markers, and rings; returns the line.

    Nothing is clipped, because the axes' limits follow from the data.
    """
    colour, marker, dash = COLOURS[style[0]], style[1], style[2]
    xs, ys = x.shown(one.x), y.shown(one.y)
    if one.low is not None and one.high is not None:
        axes.fill_between(
            xs,
            y.shown(one.low),
            y.shown(one.high),
            color=colour,
            alpha=0.16,
            linewidth=0,
            clip_on=False,
            gid=f"{PART} {number}",
        )
    if one.cloud:
        axes.plot(
            x.shown(at for at, _ in one.cloud),
            y.shown(at for _, at in one.cloud),
            color=colour,
            linewidth=CLOUD_POINT,
            alpha=0.4,
            clip_on=False,
            gid=f"{CLOUD} {number}",
        )
    every = math.ceil(len(xs) / MOST_MARKERS) or 1 if dash else 1
    (line,) = axes.plot(
        xs,
        ys,
        color=colour,
        marker=marker,
        linestyle=dash,
        markevery=(number % every, every),
        clip_on=False,
        gid=f"{LINE} {number}",
    )
    if ringed := list(one.ringed):
        axes.plot(
            xs[ringed],
            ys[ringed],
            "o",
            color=colour,
            markersize=16,
            markeredgewidth=2,
            fillstyle="none",
            clip_on=False,
            gid=f"{PART} {number}",
        )
    return line


def _scale(axes: Axes, x: Axis, y: Axis, square: bool, across: float) -> None:
    """Set limits and ticks, and draw the diagonal of a square plot."""
    if y.low is not None and not axes.dataLim.y0 < y.low:
        axes.set_ylim(bottom=y.low)
    if square:
        both = [*axes.get_xlim(), *axes.get_ylim()]
        ends = min(both), max(both)
        axes.plot(ends, ends, color="#000000", alpha=0.5, linewidth=1)
        axes.set(xlim=ends, ylim=ends)
    for axis, widen in ((x, axes.set_xlim), (y, axes.set_ylim)):
        if axis.names:
            widen(-0.5, len(axis.names) - 0.5)
    for axis, shown, limits in ((x, axes.xaxis, axes.get_xlim()), (y, axes.yaxis, axes.get_ylim())):
        shown.set_major_locator(axis.locator(*limits))
        shown.set_major_formatter(axis.text)
        shown.minorticks_off()
    # a fixed position, whatever the width of the ticks' labels
    axes.yaxis.set_label_coords((20 - LEFT_MARGIN) / across, 0.5)


def _ends_apart(series: Sequence[Series], y: Axis, up: float) -> bool:
    """Whether names at the ends of lines do not collide in a plot that is `up` pixels high."""
    drawn = [y.shown(values) for one in series for values in (one.y, one.low, one.high) if values]
    if not drawn or not series:
        return False
    every = np.concatenate(drawn)
    ends = np.array([y.shown(one.y)[-1] for one in series])
    if np.isnan(ends).any():
        return False
    if y.log:
        every, ends = np.log(every), np.log(ends)
    low = min(np.nanmin(every), math.inf if y.low is None or y.log else y.low)
    span = np.nanmax(every) - low
    return bool(span > 0 and (np.diff(np.sort(ends)) * up / span > LABEL_HEIGHT).all())


def _name_ends(
    axes: Axes, series: Sequence[Series], styles: Mapping[str, Style], x: Axis, y: Axis
) -> None:
    """Put the name of each series beside its last point, in its colour."""
    for number, one in enumerate(series):
        axes.annotate(
            one.name,
            (x.shown(one.x)[-1], y.shown(one.y)[-1]),
            xytext=(12, 0),
            textcoords="offset pixels",
            va="center",
            color=COLOURS[styles[one.name][0]],
            annotation_clip=False,
            gid=f"{KEY} {number}",
        )


def _name_points(axes: Axes, series: Sequence[Series], x: Axis, y: Axis) -> None:
    """Label the points: those of one name are joined by a thin line, with the name near the last.

    The label is put at the first free position, or at the first one if none is free.
    """
    from matplotlib.transforms import Bbox

    groups: dict[str, list[tuple[float, float]]] = {}
    for one in series:
        for label, *at in zip(one.labels, x.shown(one.x), y.shown(one.y), strict=False):
            if not any(map(math.isnan, at)):
                groups.setdefault(label, []).append(tuple(axes.transData.transform(at)))
    taken = [Bbox.from_bounds(a - 4, b - 4, 8, 8) for group in groups.values() for a, b in group]
    size, room = (
        11.0,
        Bbox.from_extents(LEFT_MARGIN, axes.bbox.y0, axes.figure.bbox.x1, axes.figure.bbox.y1),
    )
    for name, group in groups.items():
        axes.plot(
            *zip(*group, strict=True), color="#000000", alpha=0.35, linewidth=1, transform=None
        )
        (a, b), width, height = group[-1], 0.68 * size * len(name), 1.1 * size
        gaps = [
            (gap, side)
            for gap in (6, 16, 28, 40, 54, 70)
            for side in (-height / 2, 2 - gap - height, gap)
        ]
        boxes = [
            Bbox.from_bounds(a + dx, b + dy, width, height)
            for gap, dy in gaps
            for dx in (gap, -gap - width)
        ]
        inside = [
            box
            for box in boxes
            if room.x0 < box.x0 and box.x1 < room.x1 and room.y0 < box.y0 and box.y1 < room.y1
        ] or boxes
        box = next((box for box in inside if not box.count_overlaps(taken)), inside[0])
        taken.append(box)
        axes.text(box.x0, box.y0 + 2, name, size=size, transform=None)


def scatter(
    points: Mapping[str, Mapping[str, tuple[float, float]]],
    styles: Mapping[str, Style],
    x_label: str,
    y_label: str,
    alt: str,
    title: str,
) -> Drawing:
    """A drawing of points (x, y), by series and name, on logarithmic axes with the diagonal."""
    series = [
        Series(
            kind, [x for x, _ in named.values()], [y for _, y in named.values()], labels=list(named)
        )
        for kind, named in points.items()
        if named
    ]
    x_axis, y_axis = Axis(x_label, log=True), Axis(y_label, log=True)
    return plot(series, styles, x_axis, y_axis, alt, title, square=True)


def mean_and_band(
    name: str, x: Sequence[float], runs: Sequence[Sequence[float] | Array] | Array
) -> Series:
    """Series of the mean over `runs` (n, k) at each x (k,), with a band from minimum to maximum."""
    values = np.asarray(runs, float)
    known = np.where(np.isfinite(values).all(axis=0), means(values.T), np.nan)
    band = (values.min(0), values.max(0)) if len(values) > 1 else ()
    return Series(name, x, *(found.tolist() for found in (known, *band)))
