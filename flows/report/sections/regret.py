"""Regret: against the best linear predictor in hindsight, and, where the project computes one,
against its bound.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from flows.report.axes import Axis
from flows.report.drawing import Drawing, Figure, Series, Style, plot
from flows.report.sections.bounds import THEOREMS, bound_of, why_not
from flows.report.sections.curves import (
    FIRST_ROUND,
    ROUNDS,
    Curve,
    banded,
    curves_of_line,
    drawn_lines,
)
from flows.report.sections.lines import Line, StreamResults
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.orders import AS_STORED
from koco_stream.streams.stream import Stream

EVERY = 4  # of the curve's rounds: two a factor of ten


def regret_and_bound(
    store: AnyPath,
    stream: StreamResults,
    manifest: Manifest | None,
    curves: Mapping[str, Curve],
    styles: Mapping[str, Style],
) -> Figure | None:
    """The regret of the best configurations; None if no regret is known and no bound applies."""
    drawings, reasons, applies = list[Drawing](), list[str](), dict[str, tuple[float, float]]()
    rows: list[list[Any]] = []
    for line in drawn_lines(stream):
        assert line.best is not None
        why = (
            why_not(line.learner, line.best.params, stream.rounds)
            if manifest
            else "the dataset is no longer in the store"
        )
        if stream.how["max_rows"] and stream.how["order"] != AS_STORED:
            why = "the first rows of a shuffle differ from seed to seed"
        if why is not None:
            reasons.append(why)
            continue
        drawn = _against_bound(store, stream, line, curves, styles)
        if drawn is None:
            reasons.append(f"{line.name}: a label is beyond the clip")
            continue
        plots, regret, bound = drawn
        drawings += plots
        applies[line.name] = (regret, bound)
    for line in drawn_lines(stream):
        assert line.best is not None
        means, deviations = line.best.means, line.best.deviations
        if means["regret"] is not None or line.name in applies:
            told = applies.get(line.name, (None, None))
            rows.append(
                [
                    line.name,
                    means["regret"],
                    deviations["regret"],
                    line.best.comparator_largest,
                    *told,
                ]
            )
    if not rows:
        return None
    said = (
        "Regret is the cumulative squared loss above that of the best linear predictor in"
        " hindsight, of the best configuration of each "
    )
    said += (
        "line, over orders and seeds. That predictor does not respect the clip: the table says how"
        " far it predicts."
    )
    if applies:
        named = dict.fromkeys(
            f"{line.learner}: {THEOREMS[line.learner]}"
            for line in drawn_lines(stream)
            if line.name in applies
        )
        said += (
            f"\nBound, computed from the rows: {'; '.join(named)}. It is on the regret against the"
            " best function of the learner's own "
        )
        said += (
            "space, shrunk into the clip, which the plot shows and the table's last two columns"
            " have."
        )
    said += f"\nNo bound: {'; '.join(dict.fromkeys(reasons))}." if reasons else ""
    return Figure(
        "Regret",
        drawings,
        [],
        [
            "line",
            "regret against the best linear predictor",
            "std",
            "its largest prediction",
            "regret against the bound's competitor",
            "bound",
        ],
        rows,
        said,
        opened=not drawings,
    )


def _against_bound(
    store: AnyPath,
    stream: StreamResults,
    line: Line,
    curves: Mapping[str, Curve],
    styles: Mapping[str, Style],
) -> tuple[list[Drawing], float, float] | None:
    """The line's regret below its bound over the rounds, and both at the end. Of rows that are
    shuffled only the end: it is the same for every order, what lies before is not.
    """
    own = curves_of_line(line, curves)
    if not own or line.best is None:
        return None
    t = own[0].t
    last = t.size - 1
    stored = stream.how["order"] == AS_STORED
    points = (
        sorted({k for k in range(last, -1, -EVERY) if t[k] >= FIRST_ROUND} | {last})
        if stored
        else [last]
    )
    read = Stream(
        stream.dataset,
        stream.dataset_hash,
        positive_class=stream.how["positive_class"],
        max_rows=stream.how["max_rows"],
    )
    bound = bound_of(store, read, line.learner, line.best.params, [int(t[k]) for k in points])
    if bound is None:
        return None
    regret = np.array([curve.loss[points] for curve in own]) - np.array(bound.competitor)
    at_end = float(regret[:, -1].mean())
    if not stored:
        return [], at_end, bound.bound[-1]
    name = f"{line.name}, bound"
    alt = (
        f"Regret of {line.name} and its bound over the rounds on {stream.title}. At the end"
        f" {at_end:.4g} and {bound.bound[-1]:.4g}."
    )
    series = [banded(line.name, t[points], regret), Series(name, t[points].tolist(), bound.bound)]
    mine: dict[str, Style] = {line.name: styles[line.name], name: (styles[line.name][0], "", "--")}
    return [plot(series, mine, ROUNDS, Axis("regret", log=True), alt)], at_end, bound.bound[-1]
