"""Drawing: figures as SVG text, with what they claim and the numbers behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from statistics import fmean
from typing import Any

import matplotlib

Style = tuple[str, str, str]  # colour, marker, dash
MOST_INSIDE = 8  # lines whose legend fits inside the axes; that of more stands beside them


@dataclass(frozen=True)
class Figure:
    """A figure: its SVG, what it shows in words, the claims it tests (claim, criterion, outcome, holds), the numbers behind it, and a
    note on how to read it and what is missing (a line is a paragraph). `opened`: the report shows the numbers without being asked."""

    title: str
    svg: str
    alt: str
    claims: list[tuple[str, str, str, bool]]
    columns: list[str]
    rows: list[list[Any]]
    note: str
    opened: bool = False


@dataclass(frozen=True)
class Panel:
    """A scatter: points (x, y) by name for each series, drawn on logarithmic axes with the diagonal x = y."""

    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Mapping[str, tuple[float, float]]]


@contextmanager
def _drawing(columns: int, width: float, height: float) -> Iterator[tuple[Any, StringIO]]:
    """The axes (an array) of a figure in the project's style, and where its SVG will be when the block ends."""
    matplotlib.use("svg")
    from matplotlib import pyplot

    out = StringIO()
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "koco-stream", "font.size": 11, "font.family": "sans-serif"}):
        figure, axes = pyplot.subplots(1, columns, figsize=(width, height), squeeze=False)
        for one in axes[0]:
            for side in ("top", "right"):
                one.spines[side].set_visible(False)
        figure.set_layout_engine("tight")
        yield axes[0], out
        figure.savefig(out, format="svg", metadata={"Date": None}, transparent=True)
        pyplot.close(figure)


def _text(out: StringIO) -> str:
    text = out.getvalue()
    return text[text.index("<svg") :]


def lines_svg(
    x: Sequence[float],
    lines: Mapping[str, Mapping[int, Sequence[float]]],
    styles: Mapping[str, Style],
    x_label: str,
    y_label: str,
    log: bool = False,
) -> str:
    """Lines over `x`: for each name the mean over its members (seeds), and a band from the least to the largest of them."""
    with _drawing(1, 7.2, 4.4) as ((axes,), out):
        for name, members in lines.items():
            colour, marker, dash = styles[name]
            columns = list(zip(*members.values(), strict=True))
            axes.plot(x, [fmean(c) for c in columns], color=colour, marker=marker, linestyle=dash, label=name, markersize=5)
            axes.fill_between(x, [min(c) for c in columns], [max(c) for c in columns], color=colour, alpha=0.12, linewidth=0)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        if log:
            axes.set_xscale("log")
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        if len(lines) > MOST_INSIDE:
            axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        elif lines:
            axes.legend(frameon=False, fontsize=10)
    return _text(out)


def scatter_svg(panels: Sequence[Panel], styles: Mapping[str, Style]) -> str:
    """Panels side by side; the points of one name are joined, and named once, where its label covers no other."""
    with _drawing(len(panels), 6.4 * len(panels), 6.0) as (all_axes, out):
        for axes, panel in zip(all_axes, panels, strict=True):
            shown = [point for points in panel.series.values() for point in points.values()]
            low, high = (min(map(min, shown)) / 1.4, max(map(max, shown)) * 1.6) if shown else (0.01, 1.0)
            axes.plot([low, high], [low, high], color="#999999", linewidth=0.8, zorder=0)
            axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), title=panel.title)
            axes.set_xlabel(panel.x_label)
            axes.set_ylabel(panel.y_label)
            axes.grid(alpha=0.2)
            for name, points in panel.series.items():
                colour, marker, _ = styles[name]
                axes.plot(*zip(*points.values(), strict=True), marker, color=colour, label=name, markersize=5)
            for group in _by_name(panel).values():
                axes.plot(*zip(*group, strict=True), color="#bbbbbb", linewidth=0.6, zorder=0)
            _name_points(axes, panel)
            if panel.series:
                axes.legend(frameon=False, fontsize=9, loc="upper left")
    return _text(out)


def _by_name(panel: Panel) -> dict[str, list[tuple[float, float]]]:
    names = dict.fromkeys(name for points in panel.series.values() for name in points)
    return {name: [points[name] for points in panel.series.values() if name in points] for name in names}


def _name_points(axes: Any, panel: Panel) -> None:
    """Write each name near its last point, at the first place that is free; at the first place if none is."""
    size, taken = 7.5, []
    groups = _by_name(panel)
    for group in groups.values():
        for x, y in axes.transData.transform(group):
            taken.append((x - 4, y - 4, x + 4, y + 4))
    scale = axes.figure.dpi / 72
    for name, group in groups.items():
        x, y = axes.transData.transform(group[-1])
        width, height = 0.56 * size * len(name) * scale, 1.1 * size * scale
        places = [(dx, dy) for gap in (6, 16, 28, 40) for dy in (-height / 2, gap - 2, -gap - height + 2) for dx in (gap, -gap - width)]
        boxes = [(x + dx, y + dy, x + dx + width, y + dy + height) for dx, dy in places]
        box = next((b for b in boxes if not any(_overlap(b, t) for t in taken)), boxes[0])
        taken.append(box)
        axes.annotate(name, group[-1], xytext=((box[0] - x) / scale, (box[1] - y) / scale), textcoords="offset points", fontsize=size)


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
