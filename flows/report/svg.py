"""Matplotlib's SVG as a part of a page.

Text and axes take the page's colour and font, and series the colours of CSS variables, so that
plots are readable on light and dark pages and on paper. Groups have the names of their series, from
which the page's script finds what to hide and which values to show.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from flows.report.axes import Axis
from koco_stream.io.files import json_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, safe for colour-blind readers; markers and dashes distinguish series too.
# On our pages, templates/style.css replaces these values by those for light and dark pages. Black
# stands for the colour of the surrounding text.
COLOURS = {
    "blue": "#0072b2",
    "vermilion": "#c04f00",
    "green": "#00805d",
    "black": "#000000",
    "purple": "#b0558a",
    "orange": "#a86f00",
    "sky": "#2a84b8",
    "grey": "#767676",
}
# groups of a series: its line, what goes with it, its name beside the line or in the legend, and
# its small points
LINE, PART, KEY, CLOUD = "line", "part", "key", "cloud"


# a group of two markers or more of one style
MARKERS = re.compile(
    r'<g>\n(<use [^>]* style="([^"]*)"/>\n'
    r'(?:<use [^>]* style="\2"/>\n)+)'
)


def measures(axes: Axes, x: Axis, y: Axis, height: float) -> str:
    """Both axes as JSON: label, whether it is logarithmic, pixels and values of the ends.

    From these the page's script computes the values of a point. `height` is that of the plot.
    """
    box = axes.bbox
    ends = (box.x0, box.x1, *axes.get_xlim()), (height - box.y0, height - box.y1, *axes.get_ylim())
    return json_text(
        [
            [axis.label, axis.log, *(float(f"{value:.6g}") for value in values)]
            for axis, values in zip((x, y), ends, strict=True)
        ]
    )


def with_names(svg: str, series: Sequence[Any]) -> str:
    """The SVG with the name of its series on each group that belongs to one.

    `series` have a name, and the values `x` and `y` of their points.

    A line also has a title, its name and last value, which browsers show without scripts too.
    """

    def named(found: re.Match[str]) -> str:
        kind, one = found[1], series[int(found[2])]
        known = bool(one.y) and math.isfinite(one.y[-1])
        last = f": {one.y[-1]:.4g} at {one.x[-1]:.4g}" if known else ""
        title = f"<title>{escape(one.name)}{last}</title>" if kind == LINE else ""
        return f'<g class="{kind}" data-name="{escape(one.name)}">{title}'

    # the corners of a path become lines of no length, which are drawn as round points
    svg = re.sub(
        rf'(?s)(?<=<g id="{CLOUD} )(\d+">\n<path d=")([^"]*)(" style="[^"]*linecap: )\w+',
        lambda found: (
            found[1] + re.sub(r"[ML] (\S+ \S+)", r"M \1 h 0", found[2]) + found[3] + "round"
        ),
        svg,
    )
    return re.sub(rf'<g id="({LINE}|{PART}|{KEY}|{CLOUD}) (\d+)">', named, svg)


def adapted_to_page(drawn: str) -> str:
    """Matplotlib's SVG without its header, with the colours and font of the surrounding page."""
    variables = {
        value: "currentColor" if name == "black" else f"var(--{name},{value})"
        for name, value in COLOURS.items()
    }
    kept = rf"(?!(?:{LINE}|{PART}|{KEY}|{CLOUD}) )"  # ids of series
    text = re.sub(
        rf'<!--.*?-->\s*|(?<=<g) id="{kept}[^"]*"', "", drawn[drawn.index('<g id="figure_1">') :]
    )
    text = text.replace("; font-family: 'DejaVu Sans'", "").replace("xlink:href", "href")
    # what nobody sees would be half of a large page: indentation, turns by 0, hundredths of pixels
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", re.sub(r"\n +", "\n", text))
    text = re.sub(r' (?:d|x|y)="[^"]*"', _rounded, text)
    text = MARKERS.sub(  # groups of markers with their common style
        lambda found: f'<g style="{found[2]}">\n' + found[1].replace(f' style="{found[2]}"', ""),
        text,
    )
    return re.sub(
        r"(fill|stroke): (#\w{6})", lambda found: f"{found[1]}: {variables[found[2]]}", text
    )


def _rounded(found: re.Match[str]) -> str:
    """An attribute with coordinates in tenths of pixels, and in hundredths if it draws circles."""
    digits = 2 if "C" in found[0] else 1
    return re.sub(
        r"-?\d+\.\d+",
        lambda number: f"{float(number[0]):.{digits}f}".rstrip("0").rstrip("."),
        found[0],
    ).replace(" \n", "\n")
