"""The comparison of a sweep's learners over its datasets and orders."""

from dataclasses import dataclass
from typing import Any

from flows.comparing.comparison import Comparison
from flows.comparing.shown import HEADINGS, summary_rows
from flows.report.drawing import Drawing, Figure, Flag, merged_flags
from flows.tables.tables import rows_of


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
    figure : Figure
        The critical-difference diagram.
    """

    columns: list[str]
    rows: list[list[Any]]
    note: str
    flags: list[Flag]
    figure: Figure


def comparison_section(found: Comparison) -> Compared:
    """The section of a comparison. What it concludes stands on the first screen."""
    names, rows = summary_rows(found.summary)
    return Compared(
        [HEADINGS[name] for name in names],
        rows,
        f"{found.how} {found.meaning}",
        merged_flags(f"{len(found.notes)} things limit the comparison", found.notes),
        ranks_figure(found),
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
