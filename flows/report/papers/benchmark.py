"""The benchmark: its parts, and the table of its numbers that is kept with the package."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from flows.charts import Row
from flows.comparing.blocks import FIRST_HALF, Blocks
from flows.comparing.comparison import Comparison
from flows.pages import Figure
from flows.tables.differences import of_rows
from flows.tables.text import grouped

KEPT = Path(__file__).with_name("benchmark.parquet")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("part", "title", "source", "metric", "learner")),
        ("params", pa.string()),
        ("scores", pa.list_(pa.float64())),
        ("failed", pa.bool_()),
        ("beats_constant", pa.bool_()),
        ("seconds", pa.float64()),
        ("losses", pa.list_(pa.string())),
        ("choices", pa.int64()),
    ]
)
NUMBERS = ("params", "scores", "failed")  # the same on every machine; seconds are not
# the parts by their sweeps: a title, and what is compared
PARTS = {
    "benchmark": (
        "All learners, 1,000 rounds",
        "Every learner that predicts, on 1,000 shuffled rows of each dataset, with features and"
        " real targets scaled to [0, 1]. Exact kernel learners would need hours on whole streams.",
    ),
    "benchmark-whole": (
        "Whole streams",
        "The learners whose round has a bounded cost, on all rows of the same datasets.",
    ),
    "benchmark-text": (
        "Sparse texts",
        "Linear learners on all rows of the datasets of words, each row scaled to norm 1, in all of"
        " their classes.",
    ),
    "benchmark-raw": (
        "Features as the files have them",
        "Linear learners on the classification datasets of the second part, without any scaling.",
    ),
}


def table_of(parts: Mapping[str, Blocks]) -> pa.Table:
    """The table that is kept. Infinity in `scores` stands for a failed run."""
    rows = [
        {**row, "part": part, "failed": bool(row["failed"])}
        for part, found in parts.items()
        for block in found.blocks
        for row in block
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def stored_table() -> pa.Table:
    return pq.read_table(KEPT, schema=SCHEMA)


def differing(found: Blocks, sweep: str, kept: pa.Table) -> list[str]:
    differ = of_rows(
        kept.to_pylist(),
        table_of({sweep: found}).to_pylist(),
        ("part", "title", "learner"),
        NUMBERS,
    )
    return [
        f"{learner} on {title}"
        for part, title, learner in sorted(differ)
        if part == sweep and differ[part, title, learner]
    ]


def part_figures(sweep: str, found: Blocks) -> list[Figure]:
    one, (title, about) = Comparison(found, FIRST_HALF, halved=True), PARTS[sweep]
    different = differing(found, sweep, stored_table())
    n_blocks = len(found.blocks)
    n_learners = len(found.learners)
    named = f": {', '.join(different[:3])}{', …' if len(different) > 3 else ''}"
    claim = {
        "claim": f"the package's own table has these {n_blocks * n_learners:,} configurations with"
        f" their scores ({n_learners} learners on {n_blocks} datasets)",
        "criterion": "all are equal to the last bit",
        "came_out": "all are equal" if not different else f"{len(different):,} differ{named}",
        "holds": not different,
    }
    ranks = Figure(
        title,
        [one.diagram],
        [claim],
        one.said,
        "\n".join((about, one.conclusion, one.how, one.meaning, *one.notes)),
        f"{one.learners[0]} has the least mean rank, {one.ranks[one.learners[0]]:.3g}",
    )
    note = (
        "The error rate, or the mean loss where labels are real numbers, on the second half of each"
        " stream, with the configuration that was best on the first half."
    )
    return [ranks, Figure(f"{title}: each dataset", rows=scores_of(one), note=note)]


def scores_of(one: Comparison) -> list[Row]:
    by_block = grouped(one.blocks.to_pylist(), lambda row: row["block"])
    return [
        {
            "dataset": block.split(",")[0].split(":")[0],  # without how it is read and scaled
            "metric": rows[0]["metric"],
            **{row["learner"]: row["score"] for row in rows},
        }
        for block, rows in by_block.items()
    ]
