"""Plots over the rounds, for the best configuration of each learner: error, and dictionary size."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from flows.report.axes import Axis
from flows.report.drawing import Figure, Flag, Series, Style, mean_and_band, merged_flags, plot
from flows.report.rows import Curve, curves_of
from flows.report.sections.lines import Configuration, Line, StreamResults
from flows.tables.parameters import params_text
from koco_stream.io.paths import AnyPath

FIRST_ROUND = 10  # earlier errors are averages over too few rounds
MOST_LINES = 10  # most learners in a plot over the rounds
MOST_RANGES = 5  # of so many lines at most, the table has the least and largest values too
MOST_RUNS = 30  # most runs that a mean curve averages
WIDE = 20.0  # values that differ by this factor are drawn on a logarithmic axis
NEAR_BEST = 1.25  # lines that end within this factor of the least are drawn again if they touch
TOUCHING = 0.1  # so far apart at most, as a share of the axis
LAST = 30  # from this share of the rounds on
ROUNDS = Axis("round t", log=True)


def drawn_lines(stream: StreamResults) -> list[tuple[Line, Configuration]]:
    """Learners in plots over the rounds: the best `MOST_LINES`, with their best configurations."""
    return stream.best_lines[:MOST_LINES]


def curves_of_best(store: AnyPath, streams: Sequence[StreamResults]) -> dict[str, Curve]:
    """Curves, by run_id, of the best configurations that plots over the rounds show."""
    drawn = [best for stream in streams for _, best in drawn_lines(stream)]
    return curves_of(store, [run_id for best in drawn for run_id in best.run_ids[:MOST_RUNS]])


def longest_curves(best: Configuration, curves: Mapping[str, Curve]) -> list[Curve]:
    """Curves of those runs of a configuration that have the most rounds, at the same rounds."""
    found = [curves[run_id] for run_id in best.run_ids[:MOST_RUNS] if run_id in curves]
    found = [curve for curve in found if curve.t.size]
    longest = max((curve.t[-1] for curve in found), default=0)
    return [curve for curve in found if curve.t[-1] == longest]


def left_out(stream: StreamResults) -> str:
    """A sentence for the report that names the learners left out of plots over the rounds."""
    failed = [line.name for line in stream.lines if line.best is None]
    drawn, every = len(drawn_lines(stream)), len(stream.best_lines)
    sentence = f" Of {every} lines, the best {drawn} are drawn." if drawn < every else ""
    return sentence + (f" All runs of {', '.join(failed)} failed or diverged." if failed else "")


def error_over_rounds(
    stream: StreamResults, curves: Mapping[str, Curve], styles: Mapping[str, Style]
) -> Figure | None:
    """Figure of the progressive error or mean loss up to each round; None without curves."""
    series, notes = [], []
    for line, best in drawn_lines(stream):
        if own := longest_curves(best, curves):
            kept = own[0].t >= min(FIRST_ROUND, own[0].t[-1])
            t = own[0].t[kept]
            totals = [curve.mistakes if stream.has_errors else curve.loss for curve in own]
            series.append(mean_and_band(line.name, t.tolist(), np.array(totals)[:, kept] / t))
            parameters = params_text(best.params, list(line.tried)) or "one configuration"
            notes.append(f"{line.name} ({parameters})")
    values = [y for one in series for y in one.y]
    steep = bool(values) and not stream.has_errors and 0 < WIDE * min(values) < max(values)
    return _over_rounds(
        series,
        styles,
        Axis(f"progressive {stream.measure}", steep, None if steep else 0.0).zoomed(values),
        f"{stream.measure.capitalize()} over the rounds",
        f"Progressive {stream.measure} over the rounds on {stream.title}. After the last round",
        f"Best configuration of each line: {'; '.join(notes)}. Means over orders and seeds, with"
        f" bands from the smallest to the largest value, from round {FIRST_ROUND}"
        f" on.{left_out(stream)}",
        merged_flags(
            "The best configurations of several learners do not beat Constant", stream.not_better
        ),
    )


def dictionary_over_rounds(
    stream: StreamResults, curves: Mapping[str, Curve], styles: Mapping[str, Style]
) -> Figure | None:
    """Figure of the dictionary size at each round; None if no learner has a dictionary."""
    series = []
    for line, best in drawn_lines(stream):
        if own := [one for one in longest_curves(best, curves) if not np.isnan(one.size).any()]:
            series.append(mean_and_band(line.name, own[0].t.tolist(), [one.size for one in own]))
    return _over_rounds(
        series,
        styles,
        Axis("points in the dictionary", low=0.0),
        "Dictionary over the rounds",
        f"Points in the dictionary over the rounds on {stream.title}. At the end",
        "Points in the dictionary of the best configuration of each line that has one.",
    )


def touching_ends(series: Sequence[Series]) -> list[Series]:
    """The last rounds of the lines that end near the least, if there they lie on each other."""
    least, largest = min(one.y[-1] for one in series), max(max(one.y) for one in series)
    near = [one for one in series if least <= one.y[-1] <= NEAR_BEST * least] or [*series[:1]]
    if not 0 < max(one.y[-1] for one in near) - least < TOUCHING * largest:
        return []
    return [_from_round(one.x[-1] / LAST, one) for one in near]


def _from_round(first: float, one: Series) -> Series:
    """A series from a round on."""
    skipped = sum(t < first for t in one.x)
    low, high = (values and values[skipped:] for values in (one.low, one.high))
    return replace(one, x=one.x[skipped:], y=one.y[skipped:], low=low, high=high)


def _over_rounds(
    series: Sequence[Series],
    styles: Mapping[str, Style],
    y: Axis,
    title: str,
    alt: str,
    note: str,
    flags: Sequence[Flag] = (),
) -> Figure | None:
    """Figure of series over the rounds, with a table of their values; None without series.

    A series with a band has two more columns, for its least and largest values. `alt` is followed
    by the last values.
    """
    columns: dict[str, dict[float, float]] = {}
    for one in series:
        for name, values in (("", one.y), (", least", one.low), (", largest", one.high)):
            if values is not None and (not name or len(series) <= MOST_RANGES):
                columns[one.name + name] = dict(zip(one.x, values, strict=True))
    rounds = sorted({t for column in columns.values() for t in column})
    rows: list[list[Any]] = [
        [int(t), *(column.get(t) for column in columns.values())] for t in rounds
    ]
    if not series:
        return None
    ends = "; ".join(f"{one.name} {one.y[-1]:.4g}" for one in series)
    drawings = [plot(series, styles, ROUNDS, y, f"{alt}: {ends}.", wide=True)]
    if near := touching_ends(series):
        names = ", ".join(one.name for one in near)
        enlarged = f"Enlarged, from round {near[0].x[0]:,.0f} on"
        closer, words = replace(y, log=False, low=None), f"{alt}, enlarged: {names}."
        drawings.append(plot(near, styles, ROUNDS, closer, words, enlarged, wide=True))
    return Figure(title, drawings, [], ["t", *columns], rows, note, flags=list(flags))
