"""Regret against the best linear predictor in hindsight, and against its bound if there is one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from flows.report.axes import Axis
from flows.report.drawing import Drawing, Figure, Series, Style, mean_and_band, plot
from flows.report.rows import Curve
from flows.report.sections.bounds import THEOREMS, bound_of, why_not
from flows.report.sections.curves import FIRST_ROUND, ROUNDS, drawn_lines, longest_curves
from flows.report.sections.lines import Configuration, Line, StreamResults
from flows.scores.means import mean
from koco_stream.io.paths import AnyPath
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.orders import AS_STORED
from koco_stream.streams.stream import Stream

EVERY = 4  # every fourth recorded round has a bound: two a decade


def regret_and_bound(
    store: AnyPath,
    stream: StreamResults,
    manifest: Manifest | None,
    curves: Mapping[str, Curve],
    styles: Mapping[str, Style],
) -> Figure | None:
    """Figure of the best configurations' regret, and of their regret bounds.

    Without a manifest, if the dataset is not in the store, bounds are left out. None if no regret
    is known and no bound applies.
    """
    drawings, rows = list[Drawing](), list[list[Any]]()
    reasons, theorems = dict[str, None](), dict[str, None]()
    for line, best in drawn_lines(stream):
        at_end: tuple[float, float] | None = None
        why = why_not(line.learner, best.params, stream.rounds)
        if len(stream.identities) > 1:
            why = "a bound is for one dataset, and this stream has several data seeds"
        if manifest is None:
            why = "the dataset is no longer in the store"
        if stream.how["max_rows"] and stream.how["order"] != AS_STORED:
            why = "the first rows of a shuffle differ from seed to seed"
        if why is None:
            plots, at_end = _against_bound(store, stream, line, best, curves, styles)
            drawings += plots
            if at_end is None:
                why = f"{line.name}: a label is beyond the clip"
        if why is None:
            theorems[f"{line.learner}: {THEOREMS[line.learner]}"] = None
        else:
            reasons[why] = None
        if best.means["regret"] is not None or at_end is not None:
            rows.append(
                [
                    line.name,
                    best.means["regret"],
                    best.deviations["regret"],
                    best.comparator_largest,
                    *(at_end or (None, None)),
                ]
            )
    if not rows:
        return None
    note = (
        "Regret of the best configuration of each line: its cumulative squared loss above that of"
        " the best linear predictor in hindsight, over orders and seeds. That predictor may"
        " predict beyond the clip; the table has its largest prediction."
    )
    if theorems:
        note += (
            f"\nBound, computed from the rows: {'; '.join(theorems)}. It holds for the regret"
            " against the best function in the learner's own space, shrunk into the clip. The"
            " plot and the last two columns of the table show this regret."
        )
    note += f"\nNo bound: {'; '.join(reasons)}." if reasons else ""
    return Figure(
        "Regret",
        drawings,
        [],
        [
            *("line", "regret against the best linear predictor", "std", "its largest prediction"),
            *("regret against the bound's competitor", "bound"),
        ],
        rows,
        note,
        opened=not drawings,
    )


def _against_bound(
    store: AnyPath,
    stream: StreamResults,
    line: Line,
    best: Configuration,
    curves: Mapping[str, Curve],
    styles: Mapping[str, Style],
) -> tuple[list[Drawing], tuple[float, float] | None]:
    """Plot a learner's regret and its bound over the rounds, and return both at the end.

    The end is None if there is no bound. For shuffled rows only the end is given, because earlier
    bounds depend on the order.
    """
    own = longest_curves(best, curves)
    if not own or stream.how["multiclass"]:
        return [], None
    t, stored = own[0].t, stream.how["order"] == AS_STORED
    last = t.size - 1
    before = range(last - EVERY, -1, -EVERY) if stored else ()
    points = [*reversed([k for k in before if t[k] >= FIRST_ROUND]), last]
    bound = bound_of(
        store,
        Stream(
            stream.how["dataset"],
            stream.how["dataset_hash"],
            **{key: stream.how[key] for key in ("positive_class", "max_rows")},
        ),
        line.learner,
        best.params,
        [int(t[k]) for k in points],
    )
    if bound is None:
        return [], None
    regret = np.array([curve.loss[points] for curve in own]) - np.array(bound.competitor)
    at_end = mean(regret[:, -1]), bound.bound[-1]
    if not stored:
        return [], at_end
    name, x = f"{line.name}, bound", t[points].tolist()
    alt = (
        f"Regret of {line.name} and its bound over the rounds on {stream.title}. At the end"
        f" {at_end[0]:.4g} and {at_end[1]:.4g}."
    )
    series = [mean_and_band(line.name, x, regret), Series(name, x, bound.bound)]
    mine: dict[str, Style] = {line.name: styles[line.name], name: (styles[line.name][0], "", "--")}
    return [plot(series, mine, ROUNDS, Axis("regret", log=True), alt)], at_end
