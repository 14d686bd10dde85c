"""The best configuration of each line over the rounds: its error, and the size of its
dictionary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from flows.report.axes import Axis
from flows.report.drawing import Figure, Series, Style, plot
from flows.report.sections.lines import Line, StreamResults, params_text
from koco_stream.io.paths import AnyPath
from koco_stream.types import Array
from storage.results import read_curves

FIRST_ROUND = 10  # before it an error is an average over too few rounds to say anything
MOST_LINES = 10  # in a plot over the rounds
MOST_RUNS = 30  # behind a line
WIDE = 20.0  # a loss that falls by this factor is drawn on a logarithmic axis
ROUNDS = Axis("round t", log=True)


@dataclass(frozen=True)
class Curve:
    """A run's curve at rounds `t` (k,): its cumulative loss, its mistakes and the size of its
    dictionary, NaN where it has none.
    """

    t: Array
    loss: Array
    mistakes: Array
    size: Array


def drawn_lines(stream: StreamResults) -> list[Line]:
    """The lines that plots over the rounds show: the best `MOST_LINES` of those with a run that
    ended well.
    """
    return [line for line in stream.lines if line.best is not None][:MOST_LINES]


def curves_of_best(store: AnyPath, streams: Sequence[StreamResults]) -> dict[str, Curve]:
    """The curves, by run_id, of the best configuration of each line that is drawn. Those of other
    runs are not held.
    """
    wanted = [
        run_id
        for stream in streams
        for line in drawn_lines(stream)
        if line.best
        for run_id in line.best.run_ids[:MOST_RUNS]
    ]
    table = read_curves(store, wanted).sort_by([("run_id", "ascending"), ("t", "ascending")])
    ids = table.column("run_id").to_pylist()
    arrays = [
        table.column(n).cast(pa.float64()).to_numpy()
        for n in ("t", "cumulative_loss", "mistakes", "dictionary_size")
    ]
    cuts = [k for k in range(len(ids) + 1) if k in (0, len(ids)) or ids[k] != ids[k - 1]]
    return {ids[a]: Curve(*(array[a:b] for array in arrays)) for a, b in pairwise(cuts)}


def curves_of_line(line: Line, curves: Mapping[str, Curve]) -> list[Curve]:
    """The curves of a line's best configuration, those over the most rounds."""
    found = [
        curves[run_id]
        for run_id in (line.best.run_ids[:MOST_RUNS] if line.best else [])
        if run_id in curves
    ]
    longest = max((curve.t.size for curve in found), default=0)
    return [curve for curve in found if curve.t.size == longest and curve.t.size]


def banded(name: str, t: Array, values: Array) -> Series:
    """The mean over `values` (runs, k), and a band from the least to the largest."""
    several = len(values) > 1
    low, high = (
        (values.min(axis=0).tolist(), values.max(axis=0).tolist()) if several else (None, None)
    )
    return Series(name, t.tolist(), values.mean(axis=0).tolist(), low, high)


def numbers_of(series: Sequence[Series]) -> tuple[list[str], list[list[Any]]]:
    """A table of series over the rounds: columns and rows. The least and the largest stand beside a
    mean over several runs.
    """
    columns, by_round = ["t"], dict[float, list[Any]]()
    for one in series:
        names = (
            [one.name]
            if one.low is None
            else [one.name, f"{one.name}, least", f"{one.name}, largest"]
        )
        for k, t in enumerate(one.x):
            row = by_round.setdefault(t, [])
            row += [None] * (len(columns) - 1 - len(row))
            row += (
                [one.y[k]]
                if one.low is None or one.high is None
                else [one.y[k], one.low[k], one.high[k]]
            )
        columns += names
    return columns, [
        [int(t), *row, *[None] * (len(columns) - 1 - len(row))]
        for t, row in sorted(by_round.items())
    ]


def left_out(stream: StreamResults) -> str:
    """In words, which lines are not drawn."""
    drawn = len(drawn_lines(stream))
    silent = [line.name for line in stream.lines if line.best is None]
    more = sum(line.best is not None for line in stream.lines) - drawn
    said = f" Of {drawn + more} lines the best {drawn} are drawn." if more else ""
    return said + (f" No run of {', '.join(silent)} ended well." if silent else "")


def error_over_rounds(
    stream: StreamResults, curves: Mapping[str, Curve], styles: Mapping[str, Style]
) -> Figure | None:
    """The progressive error, or mean loss, up to each round."""
    series, told = [], []
    for line in drawn_lines(stream):
        own = curves_of_line(line, curves)
        if not own or line.best is None:
            continue
        kept = own[0].t >= min(FIRST_ROUND, own[0].t[-1])
        t = own[0].t[kept]
        total = np.array(
            [(curve.mistakes if stream.has_errors else curve.loss)[kept] for curve in own]
        )
        series.append(banded(line.name, t, total / t))
        told.append(
            f"{line.name}"
            f" ({params_text(line.best.params, list(line.tried)) or 'one configuration'})"
        )
    if not series:
        return None
    positive = [v for one in series for v in one.y if v > 0]
    steep = (
        not stream.has_errors
        and len(positive) == sum(len(one.y) for one in series)
        and max(positive) > WIDE * min(positive)
    )
    ends = "; ".join(f"{one.name} {one.y[-1]:.4g}" for one in series)
    columns, rows = numbers_of(series)
    return Figure(
        f"{stream.measure.capitalize()} over the rounds",
        [
            plot(
                series,
                styles,
                ROUNDS,
                Axis(f"progressive {stream.measure}", steep, None if steep else 0.0),
                f"Progressive {stream.measure} over the rounds on {stream.title}. After the last"
                f" round: {ends}.",
            )
        ],
        [],
        columns,
        rows,
        f"Best configuration of each line: {'; '.join(told)}. Means over orders and seeds, bands"
        f" from the least to the largest; from round {FIRST_ROUND} on.{left_out(stream)}",
    )


def dictionary_over_rounds(
    stream: StreamResults, curves: Mapping[str, Curve], styles: Mapping[str, Style]
) -> Figure | None:
    """The size of the dictionary, for the lines that have one; None if none has."""
    series = []
    for line in drawn_lines(stream):
        own = [curve for curve in curves_of_line(line, curves) if not np.isnan(curve.size).any()]
        if own:
            series.append(banded(line.name, own[0].t, np.array([curve.size for curve in own])))
    if not series:
        return None
    ends = "; ".join(f"{one.name} {one.y[-1]:.4g}" for one in series)
    columns, rows = numbers_of(series)
    alt = f"Size of the dictionary over the rounds on {stream.title}. At the end: {ends} points."
    return Figure(
        "Dictionary over the rounds",
        [plot(series, styles, ROUNDS, Axis("points in the dictionary", low=0.0), alt)],
        [],
        columns,
        rows,
        "Points in the dictionary of the best configuration of each line that has one.",
    )
