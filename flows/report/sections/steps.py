"""The error against the step parameter, and optima on the edge of their grid."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from flows.report.axes import Axis
from flows.report.drawing import Drawing, Figure, Series, Style, plot
from flows.report.sections.curves import drawn_lines, left_out
from flows.report.sections.lines import Configuration, Line, StreamResults

LOGARITHMIC = 8.0  # a grid whose ends are further apart is drawn on a logarithmic axis
WIDE = 20.0
FEWEST = 3  # values of a grid that has an inside


def edges_of(line: Line) -> dict[str, str]:
    """The parameters whose best value is the first or the last of its grid, and which: "smallest"
    or "largest". A value inside that is as good is taken for the best; values beyond that were
    tried and did not end well are part of the grid.
    """
    if line.best is None or line.best.merit is None:
        return {}
    found = {}
    as_good = [c for c in line.configurations if c.merit == line.best.merit]
    for name, values in line.tried.items():
        if len(values) < FEWEST or not all(
            isinstance(v, float | int) and not isinstance(v, bool) for v in values
        ):
            continue
        best = {c.params[name] for c in as_good if name in c.params}
        if best == {values[0]}:
            found[name] = "smallest"
        elif best == {values[-1]}:
            found[name] = "largest"
    return found


def edge_words(line: Line) -> list[str]:
    """The same in words."""
    assert line.best is not None or not edges_of(line)
    return [
        f"{line.name}: the best {name}, {line.best.params[name]:g}, is the {end} of its grid"
        f" ({line.tried[name][0]:g} to {line.tried[name][-1]:g}): the optimum may lie beyond"
        for name, end in edges_of(line).items()
        if line.best is not None
    ]


def best_by_value(line: Line, name: str) -> dict[float, Configuration | None]:
    """The best configuration for each value of a parameter, None where no run ended well; by
    increasing value.
    """
    by_value: dict[float, list[Configuration]] = defaultdict(list)
    for one in line.configurations:
        if name in one.params:
            by_value[float(one.params[name])].append(one)
    return {
        value: min(
            (c for c in found if c.merit is not None), key=lambda c: c.merit or 0.0, default=None
        )
        for value, found in sorted(by_value.items())
    }


def error_against_step(stream: StreamResults, styles: Mapping[str, Style]) -> Figure | None:
    """The least error for each value of the step parameter, in a plot for each parameter; None if
    no line has several values of one.
    """
    by_name: dict[str, list[Line]] = defaultdict(list)
    for line in drawn_lines(stream):
        if line.step is not None:
            by_name[line.step].append(line)
    if not by_name:
        return None
    rows: list[list[Any]] = []
    for name, lines in by_name.items():
        for line in lines:
            for value, best in best_by_value(line, name).items():
                told = (
                    (best.merit, best.least, best.largest, best.n_runs)
                    if best and best.n_runs
                    else (None, None, None, 0)
                )
                rows.append([line.name, name, value, *told])
    flags = [words for line in stream.lines for words in edge_words(line)]
    return Figure(
        f"{stream.measure.capitalize()} against the step parameter",
        [_plot(stream, name, lines, styles) for name, lines in by_name.items()],
        [],
        ["line", "parameter", "value", stream.measure, "least", "largest", "runs"],
        rows,
        "For each value the best over the line's other parameters: mean over orders and seeds,"
        f" bands from the least to the largest. A ring marks the best value.{left_out(stream)}",
        flags=flags,
    )


def _plot(
    stream: StreamResults, name: str, lines: list[Line], styles: Mapping[str, Style]
) -> Drawing:
    series, told = [], []
    for line in lines:
        found = best_by_value(line, name)
        y = [c.merit if c and c.merit is not None else math.nan for c in found.values()]
        low, high = (
            [c.least if c else math.nan for c in found.values()],
            [c.largest if c else math.nan for c in found.values()],
        )
        at = min(
            (k for k in range(len(y)) if not math.isnan(y[k])), key=lambda k: y[k], default=None
        )
        several = any(c and c.n_runs > 1 for c in found.values())
        rings = [] if at is None else [at]
        series.append(
            Series(
                line.name,
                list(found),
                y,
                low if several else None,
                high if several else None,
                rings,
            )
        )
        if at is not None:
            told.append(f"{line.name} {y[at]:.4g} at {list(found)[at]:g}")
    values = [v for one in series for v in one.x]
    shown = [v for one in series for v in one.y if v > 0]
    x = Axis(name, min(values) > 0 and max(values) >= LOGARITHMIC * min(values))
    log = bool(shown) and max(shown) > WIDE * min(shown)
    alt = (
        f"{stream.measure.capitalize()} against {name} on {stream.title}. Best: {'; '.join(told)}."
    )
    return plot(series, styles, x, Axis(stream.measure, log, None if log else 0.0), alt)
