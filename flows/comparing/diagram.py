"""The critical-difference diagram as SVG, in the colours and the font of the page around it.

Learners stand on an axis at their mean ranks, the best on the left. A thick line joins those that
cannot be told apart, and a ruler shows how far apart ranks have to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

# pixels, as all lengths here
WIDE, NARROW = 960.0, 390.0
MARGIN, TOP, ROW, BAR_ROW = 8.0, 74.0, 25.0, 11.0
SIZE = 15.0  # of text
CHARACTER, CAPITAL = 9.6, 11.8  # widths of a character and of a capital in a wide font
LEAST_AXIS = 0.3  # share of the width that long names leave for the axis
LEAST_HEIGHT = 168.0
GAP, LEAD = 6.0, 8.0  # between a name and its line, and the least length of that
BEYOND, APART = 4.0, 4.0  # how far a bar goes beyond its learners, and between two on one line


class Picture(NamedTuple):
    """A picture as SVG, the same one for narrow pages, and its description in words."""

    svg: str
    narrow: str
    alt: str


class Layout(NamedTuple):
    """Where things are: the ends of the axis, x of each learner, and the texts of the names."""

    left: float
    right: float
    xs: list[float]
    names: list[str]


def critical_difference_diagram(
    names: Sequence[str],
    ranks: Sequence[float],
    critical: float | None,
    groups: Sequence[Sequence[int]],
) -> Picture:
    """Draw learners, the best first, at their mean ranks.

    Parameters
    ----------
    names, ranks : sequence
        The learners and their mean ranks, increasing.
    critical : float or None
        The critical difference; None if there are too few blocks for one.
    groups : sequence of sequence of int
        Numbers of the learners that cannot be told apart, in each group by increasing rank.
    """
    alt = _described(names, ranks, critical, groups)
    wide, narrow = (_drawn(width, names, ranks, critical, groups, alt) for width in (WIDE, NARROW))
    return Picture(wide, narrow, alt)


def _described(
    names: Sequence[str],
    ranks: Sequence[float],
    critical: float | None,
    groups: Sequence[Sequence[int]],
) -> str:
    """The diagram in words."""
    places = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(names, ranks, strict=True))
    text = f"Mean ranks, the best first: {places}."
    if critical is None:
        return f"{text} There are too few blocks for a critical difference."
    joined = "; ".join(", ".join(names[one] for one in group) for group in groups)
    return f"{text} The critical difference is {critical:.2f}. " + (
        f"Not told apart by it: {joined}." if joined else "It tells all of them apart."
    )


def _drawn(
    width: float,
    names: Sequence[str],
    ranks: Sequence[float],
    critical: float | None,
    groups: Sequence[Sequence[int]],
    alt: str,
) -> str:
    """The diagram in one width."""
    k = len(names)
    layout = _layout(width, names, ranks)
    unit = (layout.right - layout.left) / (k - 1)
    ends = [(layout.xs[one[0]] - BEYOND, layout.xs[one[-1]] + BEYOND) for one in groups]
    levels = _levels(ends)
    below = TOP + 14.0 + BAR_ROW * (max(levels, default=-1) + 1)
    rows = (k + 1) // 2
    height = max(LEAST_HEIGHT, below + ROW * rows + 6.0)
    parts = _axis(layout, k) + (_ruler(layout, critical, unit) if critical is not None else [])
    for (start, end), level in zip(ends, levels, strict=True):
        y = TOP + 12.0 + BAR_ROW * level
        parts.append(_line(start, y, end, y, 'stroke="var(--vermilion,#c04f00)" stroke-width="5"'))
    for number, (x, text) in enumerate(zip(layout.xs, layout.names, strict=True)):
        on_left = number < rows
        row = number if on_left else k - 1 - number
        y = below + ROW * (row + 0.5)
        room = MARGIN + _width(text) + GAP
        end = min(room, x) if on_left else max(width - room, x)
        path = f"M {x:.1f} {TOP:.1f} V {y:.1f} H {end:.1f}"
        parts.append(f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{TOP:.1f}" r="4.5"/>')
        at, anchor = (MARGIN, "start") if on_left else (width - MARGIN, "end")
        parts.append(_text(at, y + 5.0, text, anchor))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img"'
        f' aria-label="{escape(alt)}" font-family="system-ui, sans-serif" font-size="{SIZE:g}"'
        f' fill="currentColor">\n' + "\n".join(parts) + "\n</svg>"
    )


def _layout(width: float, names: Sequence[str], ranks: Sequence[float]) -> Layout:
    """Place the axis so that every name has room beside its line; too long names are cut.

    A name may be as long as there is room before its line when the axis is the shortest.
    """
    k, rows = len(names), (len(names) + 1) // 2
    shares = [(rank - 1.0) / (k - 1) for rank in ranks]
    beside, axis = (1.0 - LEAST_AXIS) * width / 2.0 - MARGIN - GAP - LEAD, LEAST_AXIS * width
    inward = [share if number < rows else 1.0 - share for number, share in enumerate(shares)]
    texts = [
        _shortened(name, beside + share * axis) for name, share in zip(names, inward, strict=True)
    ]
    needed = [MARGIN + _width(text) + GAP + LEAD for text in texts]
    left = right = MARGIN + LEAD
    for _ in range(50):  # each margin depends on the other
        across = width - left - right
        left = max(
            [left, *(n - s * across for n, s in zip(needed[:rows], shares[:rows], strict=True))]
        )
        across = width - left - right
        right = max(
            [
                right,
                *(
                    n - (1.0 - s) * across
                    for n, s in zip(needed[rows:], shares[rows:], strict=True)
                ),
            ]
        )
    xs = [left + share * (width - left - right) for share in shares]
    return Layout(left, width - right, xs, texts)


def _shortened(name: str, room: float) -> str:
    """A learner's name without its module or file, cut where it is wider than `room`."""
    short = name.rpartition(":")[2]
    if _width(short) <= room:
        return short
    kept = next(
        n for n in range(len(short) - 1, -1, -1) if n == 0 or _width(short[:n] + "…") <= room
    )
    return f"{short[:kept]}…"


def _axis(layout: Layout, k: int) -> list[str]:
    """The axis from rank 1 to k, with a tick at as many ranks as there is room for."""
    unit = (layout.right - layout.left) / (k - 1)
    every = next(n for n in range(1, k + 1) if n * unit >= 26.0 or n == k)
    parts = [_line(layout.left, TOP, layout.right, TOP, 'stroke="currentColor" stroke-width="1.5"')]
    for rank in range(1, k + 1, every):
        x = layout.left + (rank - 1) * unit
        parts.append(_line(x, TOP - 6.0, x, TOP, 'stroke="currentColor" stroke-width="1.5"'))
        parts.append(_text(x, TOP - 12.0, str(rank), "middle"))
    return parts


def _ruler(layout: Layout, critical: float, unit: float) -> list[str]:
    """The critical difference as a length above the axis."""
    end, stroke = layout.left + critical * unit, 'stroke="currentColor" stroke-width="1.5"'
    words, y = f"critical difference {critical:.2f}", 36.0
    shown = min(end, layout.right)  # longer than the axis, it tells nothing apart
    parts = [
        _line(layout.left, y, shown, y, stroke),
        _line(layout.left, y - 5, layout.left, y + 5, stroke),
    ]
    if end <= layout.right:
        parts.append(_line(end, y - 5.0, end, y + 5.0, stroke))
    else:
        parts.append(_text(shown + 2.0, y + 5.0, "…", "start"))
    return [*parts, _text(layout.left, y - 12.0, words, "start")]


def _levels(bars: Sequence[tuple[float, float]]) -> list[int]:
    """The line on which each bar from left to right is drawn, so that no two touch."""
    ends, levels = list[float](), list[int]()
    for left, right in bars:
        level = next((n for n, end in enumerate(ends) if end + APART <= left), len(ends))
        ends[level : level + 1] = [right]
        levels.append(level)
    return levels


def _width(text: str) -> float:
    """Approximate width of a text."""
    return sum(CAPITAL if one.isupper() else CHARACTER for one in text)


def _line(x1: float, y1: float, x2: float, y2: float, more: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {more}/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
