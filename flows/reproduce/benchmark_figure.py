"""A part of the benchmark as figures of a page: its ranks, and the errors on each dataset."""

from itertools import groupby
from typing import Any

import pyarrow as pa

from flows.comparing.blocks import Blocks
from flows.comparing.comparison import Comparison
from flows.comparing.shown import HEADINGS, summary_rows
from flows.report.drawing import Claim, Drawing, Figure, merged_flags
from flows.reproduce.benchmark import Part, differing
from flows.tables.tables import rows_of


def part_figures(
    part: Part, found: Blocks, one: Comparison, kept: pa.Table | None
) -> tuple[Figure, Figure]:
    """Two figures of a part: the learners by mean rank, and their scores on each dataset.

    With `kept`, the table that is kept with the package, the first has the claim that its numbers
    are those of the documentation.
    """
    names, rows = summary_rows(one.summary)
    ranks = Figure(
        part.title,
        [Drawing(one.diagram.svg, one.diagram.alt, one.diagram.narrow)],
        [] if kept is None else [_claim(part, found, kept)],
        [HEADINGS[name] for name in names],
        rows,
        f"{part.about}\n{one.conclusion}\n{one.how} {one.meaning}",
        opened=True,
        flags=merged_flags(f"{len(one.notes)} things limit the comparison", one.notes),
    )
    columns, table = scores_table(one)
    scores = Figure(
        f"{part.title}: each dataset",
        [],
        [],
        columns,
        table,
        "The error rate, or the mean loss where labels are real numbers, on the second half of each"
        " stream: the mean over orders and seeds, with the configuration that was best on the first"
        " half.",
        opened=True,
    )
    return ranks, scores


def scores_table(one: Comparison) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows of the scores on each dataset, with a column for each learner by rank."""
    rows = []
    for block, found in groupby(rows_of(one.blocks), lambda row: row["block"]):
        scores = {row["learner"]: row for row in found}
        dataset = block.split(",")[0].split(":")[0]  # without how it is read and scaled
        metric = scores[one.learners[0]]["metric"]
        rows.append([dataset, metric, *(scores[name]["score"] for name in one.learners)])
    return ["dataset", "metric", *one.learners], rows


def _claim(part: Part, found: Blocks, kept: pa.Table) -> Claim:
    """The claim that the numbers of a part are those of the documentation's page."""
    different = differing(found, part.sweep, kept)
    n_blocks, n_learners = len(found.blocks), len(found.learners)
    total = n_blocks * n_learners
    named = f": {', '.join(different[:3])}{', …' if len(different) > 3 else ''}"
    return Claim(
        f"the documentation's page has these {total:,} configurations with their scores"
        f" ({n_learners} learners on {n_blocks} datasets)",
        "all are equal to the last bit",
        "all are equal" if not different else f"{len(different):,} differ{named}",
        not different,
    )
