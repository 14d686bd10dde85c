"""Error against the step parameter."""

import math
from collections.abc import Mapping
from dataclasses import replace

from flows.report.axes import Axis
from flows.report.drawing import Drawing, Figure, Series, Style, plot
from flows.report.sections.curves import drawn_lines, left_out
from flows.report.sections.edges import edge_flags
from flows.report.sections.lines import Configuration, Line, StreamResults, best_of
from flows.tables.tables import grouped

LOGARITHMIC = 8.0  # a grid whose ends have a larger ratio is drawn on a logarithmic axis
WIDE = 20.0
MOST_JOINED = 12  # values that are joined by a line, if they were drawn with other parameters'


def best_by_value(line: Line, name: str) -> dict[float, Configuration | None]:
    """Best configuration for each value of a parameter, by increasing value.

    It is None for a value without ok runs.
    """
    by_value = grouped(
        [one for one in line.configurations if name in one.params],
        lambda one: float(one.params[name]),
    )
    return {value: best_of(found) for value, found in sorted(by_value.items())}


def is_scattered(line: Line, name: str) -> bool:
    """Whether most configurations have a value of their own, and differ in other parameters too.

    So it is where values are drawn: a line would join points that have little in common.
    """
    values = len(line.tried[name])
    return values > max(MOST_JOINED, len(line.configurations) / 2) and len(line.tried) > 1


def error_against_step(stream: StreamResults, styles: Mapping[str, Style]) -> Figure | None:
    """Figure of the least error for each value of the step parameter, one plot per parameter.

    None if no learner has several values of one.
    """
    by_name = grouped((line for line, _ in drawn_lines(stream)), lambda line: line.step)
    by_name.pop(None, None)
    if not by_name:
        return None
    nothing = (None, None, None, 0)
    rows = [
        [
            *(line.name, name, value),
            *((best.merit, best.least, best.largest, best.n_runs) if best else nothing),
        ]
        for name, lines in by_name.items()
        for line in lines
        for value, best in best_by_value(line, str(name)).items()
    ]
    return Figure(
        f"{stream.measure.capitalize()} against the step parameter",
        [_plot(stream, str(name), lines, styles) for name, lines in by_name.items()],
        [],
        ["line", "parameter", "value", stream.measure, "least", "largest", "runs"],
        rows,
        "For each value, the best over the line's other parameters. Means over orders and seeds,"
        " with bands from the smallest to the largest value. A ring marks the best"
        f" value.{left_out(stream)}",
        flags=edge_flags([stream]),
    )


def _plot(
    stream: StreamResults, name: str, lines: list[Line], styles: Mapping[str, Style]
) -> Drawing:
    """Plot of the least error for each value of a parameter, by learner."""
    series, notes, styles = [], [], dict(styles)
    for line in lines:
        found = best_by_value(line, name)
        merits = {value: best.merit for value, best in found.items() if best}
        y, low, high = (
            [getattr(best, what) if best else math.nan for best in found.values()]
            for what in ("merit", "least", "largest")
        )
        at = min(merits, key=lambda value: merits[value] or 0.0, default=None)
        one = Series(
            line.name, list(found), y, low, high, ringed=[k for k, x in enumerate(found) if x == at]
        )
        several = any(best and best.n_runs > 1 for best in found.values())
        if is_scattered(line, name):
            several, styles[line.name] = False, (*styles[line.name][:2], "")
        series.append(one if several else replace(one, low=None, high=None))
        if at is not None:
            notes.append(f"{line.name} {merits[at]:.4g} at {at:g}")
    values = [v for one in series for v in one.x]
    shown = [v for one in series for v in one.y if v > 0]
    x = Axis(name, min(values) > 0 and max(values) >= LOGARITHMIC * min(values))
    log = bool(shown) and max(shown) > WIDE * min(shown)
    return plot(
        series,
        styles,
        x,
        Axis(stream.measure, log, None if log else 0.0).zoomed(v for one in series for v in one.y),
        f"{stream.measure.capitalize()} against {name} on {stream.title}."
        f" Best: {'; '.join(notes)}.",
    )
