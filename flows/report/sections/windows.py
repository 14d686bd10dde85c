"""Metrics over windows of rounds, for the best configuration of each learner."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flows.report.axes import Axis
from flows.report.drawing import Drawing, Figure, Series, Style, mean_and_band, plot
from flows.report.sections.curves import MOST_RUNS, drawn_lines, left_out
from flows.report.sections.lines import StreamResults
from koco_stream.io.paths import AnyPath
from koco_stream.metrics import METRICS, WINDOWED
from koco_stream.streams.manifest import Manifest
from koco_stream.streams.orders import AS_STORED
from storage.results import read_windows

LABELS = {"mean_loss": "mean loss", "error_rate": "error rate"}
MOST_ROWS = 1000  # windows in the table below the plots


def metrics_over_windows(
    store: AnyPath, stream: StreamResults, manifest: Manifest | None, styles: Mapping[str, Style]
) -> Figure | None:
    """Figure of each metric over windows of rounds; None without windows.

    The rounds at which a generated stream changes are marked, if it is read as stored.
    """
    lines = {line.name: best.run_ids[:MOST_RUNS] for line, best in drawn_lines(stream)}
    table = read_windows(store, [run_id for ids in lines.values() for run_id in ids])
    if not table.num_rows:
        return None
    changes = manifest.changes if manifest and stream.how["order"] == AS_STORED else ()
    marks = [t for t in changes if t < stream.rounds]
    drawings, columns, rounds = list[Drawing](), dict[str, dict[int, float]](), set[int]()
    for metric in WINDOWED:
        series = [
            one for name, ids in lines.items() if (one := _series(name, table, ids, metric)).x
        ]
        if not series:
            continue
        for one in series:
            columns[f"{one.name}, {metric}"] = dict(zip(map(int, one.x), one.y, strict=True))
            rounds.update(map(int, one.x))
        ends = "; ".join(f"{one.name} {one.y[-1]:.4g}" for one in series)
        label = LABELS.get(metric, metric)
        better = f" ({METRICS[metric].better} is better)" if metric in METRICS else ""
        drawings.append(
            plot(
                series,
                styles,
                Axis("last round of the window"),
                Axis(f"{label}{better}"),
                f"{label} over windows on {stream.title}. In the last window: {ends}.",
                marks=marks,
            )
        )
    rows: list[list[Any]] = [
        [t, *(column.get(t) for column in columns.values())] for t in sorted(rounds)
    ]
    return Figure(
        "Metrics over windows",
        drawings,
        [],
        ["last", *columns],
        rows[-MOST_ROWS:],
        "Means over orders and seeds of each line's best configuration, with bands from the"
        f" smallest to the largest value.{_said_of(marks)}{left_out(stream)}",
    )


def _said_of(marks: Sequence[int]) -> str:
    """A sentence on the marked rounds."""
    if not marks:
        return ""
    return " The stream changes after the rounds with vertical lines."


def _series(name: str, table: pa.Table, run_ids: Sequence[str], metric: str) -> Series:
    """A line's metric over the windows, averaged over those of its runs that have the most."""
    runs = []
    for run_id in run_ids:
        mine = table.filter(pc.equal(table.column("run_id"), run_id))
        values = mine.column(metric).to_numpy().astype(float)
        if np.isfinite(values).any():
            runs.append((mine.column("last").to_numpy(), values))
    most = max((last.size for last, _ in runs), default=0)
    longest = [(last, values) for last, values in runs if last.size == most]
    if not longest:
        return Series(name, [], [])
    defined = np.isfinite([values for _, values in longest]).all(0)
    shown = [values[defined] for _, values in longest]
    return mean_and_band(name, longest[0][0][defined].tolist(), shown)
