"""The comparison of a sweep's learners over its datasets and orders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.comparing.comparison import Comparison
from flows.comparing.shown import HEADINGS, summary_rows
from flows.report.axes import Axis
from flows.report.drawing import Drawing, Figure, Flag, Series, Style, merged_flags, plot
from flows.tables.tables import rows_of

POINTS: Style = ("blue", "o", "")
FRONT_STYLE: Style = ("grey", "", "--")
FRONT = "not beaten in both"
OTHERS = "learners"


@dataclass(frozen=True)
class Compared:
    """The section of a report that compares learners.

    Attributes
    ----------
    columns, rows : list
        The table of learners, the best first.
    note : str
        How it was computed, and what the columns mean.
    flags : list of Flag
        What was left out or failed.
    figures : list of Figure
        The critical-difference diagram, and time against rank where times are known.
    """

    columns: list[str]
    rows: list[list[Any]]
    note: str
    flags: list[Flag]
    figures: list[Figure]


def comparison_section(found: Comparison) -> Compared:
    """The section of a comparison. What it concludes stands on the first screen."""
    names, rows = summary_rows(found.summary)
    figures = [ranks_figure(found), time_against_rank(found)]
    return Compared(
        [HEADINGS[name] for name in names],
        rows,
        f"{found.how} {found.meaning}",
        merged_flags(f"{len(found.notes)} things limit the comparison", found.notes),
        [one for one in figures if one is not None],
    )


def ranks_figure(found: Comparison) -> Figure:
    """Figure of the critical-difference diagram, with each block's ranks as its numbers."""
    picture = found.diagram
    groups = (
        " Learners that a thick line joins cannot be told apart by Nemenyi's test at level"
        f" {found.alpha:g}: their mean ranks differ by less than the critical difference."
        if found.critical_difference is not None
        else ""
    )
    return Figure(
        "Mean ranks",
        [Drawing(picture.svg, picture.alt, picture.narrow)],
        [],
        ["block", "metric", "learner", "score", "rank", "repeats", "failed", "µs a round"],
        [
            [row[name] for name in ("block", "metric", "learner", "score", "rank", "repeats")]
            + [row["failed"], row["microseconds"]]
            for row in rows_of(found.blocks)
        ],
        f"Ranks over {found.n_blocks:,} blocks; the best learner is on the left.{groups}",
    )


def time_against_rank(found: Comparison) -> Figure | None:
    """Figure of the time a round against the mean rank; None if they are not known, or equal."""
    rows = [row for row in rows_of(found.summary) if row["microseconds"] is not None]
    if any(len({f"{row[name]:.6g}" for row in rows}) < 2 for name in ("microseconds", "mean_rank")):
        return None
    front = sorted((row for row in rows if row["pareto"]), key=lambda row: row["microseconds"])
    names = [row["learner"].rpartition(":")[2] for row in rows]  # without modules and files
    series = [_points(OTHERS, rows, names), _points(FRONT, front)]
    styles: Mapping[str, Style] = {OTHERS: POINTS, FRONT: FRONT_STYLE}
    alt = "Mean rank against time a round. Not beaten in both: " + "; ".join(
        f"{row['learner']} {row['microseconds']:.3g} µs at {row['mean_rank']:.2f}" for row in front
    )
    return Figure(
        "Time against mean rank",
        [plot(series, styles, Axis("µs a round", log=True), Axis("mean rank"), f"{alt}.")],
        [],
        ["learner", "µs a round", "mean rank", "on the front"],
        [
            [row["learner"], row["microseconds"], row["mean_rank"], row["pareto"]]
            for row in sorted(rows, key=lambda row: row["microseconds"])
        ],
        "Left and low is better. The dashed line joins the learners that no other one beats in"
        " both. Time is that of the chosen configurations, the geometric mean over blocks; only the"
        " scan is timed, and runs may have shared a pass and a machine.",
    )


def _points(name: str, rows: list[dict[str, Any]], labels: Sequence[str] = ()) -> Series:
    """Time and mean rank of learners as a series."""
    times, ranks = ([row[key] for row in rows] for key in ("microseconds", "mean_rank"))
    return Series(name, times, ranks, labels=labels)
