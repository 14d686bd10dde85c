"""Error against each parameter that varied."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

from flows.report.axes import Axis
from flows.report.drawing import Drawing, Figure, Series, Style, plot
from flows.report.sections.curves import drawn_lines, left_out
from flows.report.sections.lines import Configuration, Line, StreamResults, best_of, is_number
from flows.tables.parameters import sort_key
from flows.tables.tables import grouped

T = TypeVar("T")
LOGARITHMIC = 8.0  # values whose ends have a larger ratio are drawn on a logarithmic axis
WIDE = 20.0  # so are errors
MOST_JOINED = 12  # values that are joined by a line, if they were drawn with other parameters'
MOST_VALUES = 64  # values that are joined in any case
MOST_POINTS = 300  # points of configurations in a plot
MOST_ROWS = 100  # most values in the table


def is_scattered(line: Line, name: str) -> bool:
    """Whether most configurations have a value of their own, and differ in other parameters too.

    So it is where values are drawn: a line would join points that have little in common.
    """
    values = len(line.tried[name])
    return values > max(MOST_JOINED, len(line.configurations) / 2) and len(line.tried) > 1


def best_by_value(line: Line, name: str) -> dict[Any, Configuration | None]:
    """Best configuration for each value of a parameter, by increasing value.

    It is None for a value without ok runs. Many drawn values are put into `MOST_JOINED` parts of as
    many configurations, each of which has its best one.
    """
    with_value = [one for one in line.configurations if name in one.params]
    by_value = grouped(with_value, lambda one: _plain(one.params[name]))
    in_order = [value for value in map(_plain, line.tried[name]) if value in by_value]
    if not is_scattered(line, name) and len(in_order) <= MOST_VALUES:
        return {value: best_of(by_value[value]) for value in in_order}
    sorted_ones = [one for value in in_order for one in by_value[value]]
    best = [best_of(part) for part in parts_of(sorted_ones, MOST_JOINED)]
    return {_plain(one.params[name]): one for one in best if one is not None}


def parts_of(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Items in at most so many parts of consecutive ones, of equal size but for one."""
    count = min(most, len(items))
    ends = [round(k * len(items) / count) for k in range(count + 1)] if count else []
    return [items[a:b] for a, b in pairwise(ends)]


def _plain(value: Any) -> Any:
    """A parameter's value as it is drawn: a float, or a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return float(value) if is_number(value) else str(value)


def error_against_parameters(stream: StreamResults, styles: Mapping[str, Style]) -> Figure | None:
    """Figure of the error against each parameter that varied; None if none did."""
    lines = [line for line, _ in drawn_lines(stream)]
    names = dict.fromkeys(
        [line.step for line in lines if line.step] + [name for line in lines for name in line.tried]
    )
    by_name = {name: [line for line in lines if name in line.tried] for name in names}
    if not by_name:
        return None
    nothing = (None, None, None, 0)
    rows = [
        [
            *(line.name, name, value),
            *((best.merit, best.least, best.largest, best.n_runs) if best else nothing),
        ]
        for name, found in by_name.items()
        for line in found
        for value, best in best_by_value(line, name).items()
    ]
    known = sorted(row[3] for row in rows if row[3] is not None)
    if left := len(rows) > MOST_ROWS:
        rows = [row for row in rows if row[3] is not None and row[3] <= known[:MOST_ROWS][-1]]
    many = any(len(line.configurations) > MOST_POINTS // len(lines) for line in lines)
    return Figure(
        f"{stream.measure.capitalize()} against the parameters",
        [_plot(stream, name, found, styles) for name, found in by_name.items()],
        [],
        ["line", "parameter", "value", stream.measure, "least", "largest", "runs"],
        rows,
        "A point is a configuration, averaged over orders and seeds. A line joins the best at each"
        " value, over the line's other parameters, with a band from the smallest to the largest"
        f" value of its runs; where values are drawn, the best of {MOST_JOINED} parts of them. A"
        " ring marks the best value."
        + (
            f" At most {MOST_POINTS} points are drawn in a plot: the best half of them, and of the"
            " others an even sample by rank."
            if many
            else ""
        )
        + (f" The table has the best {MOST_ROWS} of these values." if left else "")
        + left_out(stream),
    )


def kept_points(configurations: Sequence[Configuration], most: int) -> list[Configuration]:
    """At most so many configurations: the best half of that, and an even sample of the others."""
    known = sorted(
        (one for one in configurations if one.merit is not None), key=lambda one: one.merit or 0.0
    )
    if len(known) <= most:
        return known
    best, others = known[: most // 2], known[most // 2 :]
    count = most - len(best)
    return best + [others[(2 * k + 1) * len(others) // (2 * count)] for k in range(count)]


def _axis(name: str, values: Sequence[Any]) -> Axis:
    """The axis of a parameter: of names, if any of its values is not a number."""
    if not all(map(is_number, values)):
        return Axis(name, names=tuple(dict.fromkeys(map(str, values))))
    return Axis(name, min(values) > 0 and max(values) >= LOGARITHMIC * min(values))


def _places(axis: Axis, values: Sequence[Any]) -> list[float]:
    """Where values stand on their axis."""
    return [float(axis.names.index(str(value)) if axis.names else value) for value in values]


def _plot(
    stream: StreamResults, name: str, lines: list[Line], styles: Mapping[str, Style]
) -> Drawing:
    """Plot of the error against a parameter, by line."""
    series, notes, styles = [], [], dict(styles)
    of_lines = {line.name: best_by_value(line, name) for line in lines}
    tried = sorted({_plain(v) for line in lines for v in line.tried[name]}, key=sort_key)
    x = _axis(name, tried)
    for line in lines:
        found = of_lines[line.name]
        merits = {value: best.merit for value, best in found.items() if best}
        y, low, high = (
            [getattr(best, what) if best else math.nan for best in found.values()]
            for what in ("merit", "least", "largest")
        )
        at = min(merits, key=lambda value: merits[value] or 0.0, default=None)
        joined = {id(best) for best in found.values()}
        others = [c for c in line.configurations if name in c.params and id(c) not in joined]
        kept = kept_points(others, MOST_POINTS // len(lines))
        cloud = _places(x, [_plain(one.params[name]) for one in kept])
        one = Series(
            line.name,
            _places(x, list(found)),
            y,
            low,
            high,
            ringed=[k for k, value in enumerate(found) if value == at],
            cloud=[(a, c.merit or 0.0) for a, c in zip(cloud, kept, strict=True)],
        )
        several = any(best and best.n_runs > 1 for best in found.values())
        several = several and not x.names and not is_scattered(line, name)
        if x.names:
            styles[line.name] = (*styles[line.name][:2], "")
        series.append(one if several else replace(one, low=None, high=None))
        if at is not None:
            notes.append(f"{line.name} {merits[at]:.4g} at {at if x.names else f'{at:g}'}")
    shown = [v for one in series for v in (*one.y, *(b for _, b in one.cloud))]
    positive = [v for v in shown if v > 0]
    log = bool(positive) and max(positive) > WIDE * min(positive)
    return plot(
        series,
        styles,
        x,
        Axis(stream.measure, log, None if log else 0.0).zoomed(shown),
        f"{stream.measure.capitalize()} against {name} on {stream.title}."
        f" Best: {'; '.join(notes)}.",
    )
