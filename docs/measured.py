"""The pages' parts on what was measured: the benchmark of the learners, and their speed."""

import json
import re
from pathlib import Path
from textwrap import fill

from pyarrow.csv import read_csv

from flows.comparing.blocks import FIRST_HALF, Blocks
from flows.comparing.comparison import Comparison
from flows.report.papers.benchmark import KEPT, PARTS, stored_table
from flows.tables.text import grouped, number_text

ROOT = Path(__file__).parents[1]
WIDTH = 100
OTHERS = re.compile(r"VW|Vowpal|NumPy|optuna|load_svmlight")  # programs that are not ours
ON_FIRST_PAGE = (
    "20news: VW OjaNewton's marginal pass / ours, m=10",
    "dense: VW OjaNewton's marginal pass / ours, m=10",
    "PROS-N-KONS on cadata: NumPy / ours",
    "1,000 runs: Vowpal Wabbit's seconds / ours",
    "1,000 runs: optuna's seconds / ours",
)
FIRST_PAGE = """
`make bench` of {date} on two cores ({machine}): a pass of Vowpal Wabbit's `--OjaNewton` takes {}
times as long as `OjaSON`'s on 20news, {} times on dense rows; PROS-N-KONS in NumPy {} times on
cadata; 1,000 runs {} times with Vowpal Wabbit, {} times with Optuna.
[All claims](docs/costs.md#measured-speed), with those that do not hold.
"""
HOW = (
    "**Budget.** Each learner has 16 configurations on each dataset, drawn by a scrambled "
    "Sobol sequence from the ranges in the [sweep files](../flows/sweeps/benchmark.toml). "
    "Halving keeps a quarter of them at each rung. Learners with more parameters get no more "
    "configurations.",
    "**Repeats.** Three orders, and two seeds of learners that draw random numbers.",
    "**Selection.** A configuration is chosen by the first half of the stream, and compared "
    "on the second. Each row is predicted before it is learnt.",
    "**Loss.** The squared loss for all, since all have it. Several classes are learnt each "
    "against the rest. Predictions are within [−1, 1].",
    "**Times** are of the scan only; another machine has others.",
    "**Datasets.** w1a is a part of w8a, and a9a and adult describe the same people: not all "
    "are independent.",
)

BY = ("on half 1", "on half 2", "by default", "by Mixture", "in hindsight")
DEFAULTS = """
One configuration of each sketched learner for the 25 sets and eight with rows of norm 1. Those that
are chosen on one half of the sets rank better on the other, both ways, among all learners' defaults
of before. The sweep is `defaults`.
"""
AFTER = """
[Other learners](../flows/report/papers/defaults.csv) keep theirs. Hindsight takes the best on each
set. On texts `alpha` from 1 to 3 is better.
"""


def item(text):
    """An item of a list."""
    return fill(
        f"- {text}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def paragraph(text):
    """A paragraph."""
    return fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def benchmark_page():
    """The ranks of the kept table, and what may be concluded."""
    sections = [
        "# The benchmark",
        paragraph(
            "All learners of this project, tuned with equal budgets, on all real datasets at hand."
            " `koco reproduce benchmark --data FOLDER --store store` computes it again, in less"
            " than an hour on two cores, compares every number to the last bit, and writes a page"
            " with the diagrams, the tests and the scores on each dataset, which"
            " [a table](../flows/report/papers/benchmark.parquet) keeps. [Compare](compare.md) says"
            " how ranks and tests are computed."
        ),
        "## How it was made",
        "\n".join(map(item, HOW)),
    ]
    for part, found in parts_of(stored_table()).items():
        one = Comparison(found, FIRST_HALF, halved=True)
        ranks = [
            f"{row['learner']} {number_text(row['mean_rank'], 3)}"
            f" ({number_text(row['microseconds'], 2)})"
            for row in one.summary.to_pylist()
        ]
        sections += [
            f"## {PARTS[part][0]}",
            paragraph(f"{PARTS[part][1]} The sweep is `{part}`, on {one.n_blocks} datasets."),
            paragraph(f"Mean rank, and µs a round in brackets: {', '.join(ranks)}."),
            paragraph(f"**What follows.** {in_short(one.conclusion)}"),
        ]
    return [*sections, *defaults_part()]


def defaults_part():
    """The defaults of the sketched learners, as they were chosen and judged."""
    rows = read_csv(KEPT.with_name("defaults.csv")).to_pylist()
    cells = [
        [
            *(row["learner"], f"{row['before']} → {row['default']}"),
            *(row[f"rank {one}"] for one in BY),
        ]
        for row in rows
        if row["before"] != row["default"]
    ]
    lines = [["learner", "default", *BY], ["---"] * (2 + len(BY)), *cells]
    return [
        "## Defaults",
        paragraph(DEFAULTS),
        "\n".join(f"|{'|'.join(map(str, line))}|" for line in lines).replace(" → ", "→"),
        paragraph(AFTER),
        "![Mean ranks by default and Mixture](defaults.svg)",
    ]


def in_short(conclusion):
    """Without the list of those that are worse, which the ranks end with."""
    first, _, apart = conclusion.partition("; it cannot be told apart")
    differ, _, better = first.partition(". ")
    return f"{differ}. {better.split()[0]} cannot be told apart{apart}" if apart else conclusion


def parts_of(table):
    """The blocks of each part, from the table that is kept."""
    rows = [{**row, "failed": "failed" * row["failed"], "lacking": ""} for row in table.to_pylist()]
    parts = {}
    for part, mine in grouped(rows, lambda row: row["part"]).items():
        blocks = [*grouped(mine, lambda row: row["title"]).values()]
        parts[part] = Blocks([row["learner"] for row in blocks[0]], blocks, [])
    return parts


def speed_part():
    """The claims of `make bench` that are about other programs, and those that do not hold."""
    found = json.loads((ROOT / "docs" / "speed.json").read_text())
    claims = [claim for claim in found["claims"] if claim["bound"] is not None]
    missed = [claim for claim in claims if not claim["holds"]]
    first = {c["claim"].partition(": ")[2]: c for c in reversed(claims) if c not in missed}
    beside = [c for c in first.values() if OTHERS.search(c["claim"])][::-1]
    return [
        paragraph(
            f"`make bench` measures {len(claims)} claims, most of them ratios; on one machine"
            f" ({found['machine']}), {len(claims) - len(missed)} hold ([all](speed.json)). Those"
            " beside other programs:"
        ),
        "\n".join(map(claim_item, beside)),
        paragraph(
            "Those that do not hold; disturbed ones have repetitions that lie far apart, as beside"
            " other work:"
        ),
        "\n".join(map(claim_item, missed)),
    ]


def measured_part():
    """The claims of the first page, in a sentence."""
    found = json.loads((ROOT / "docs" / "speed.json").read_text())
    claims = {claim["claim"]: f"{claim['measured']:.2g}" for claim in found["claims"]}
    text = FIRST_PAGE.format(*map(claims.get, ON_FIRST_PAGE), **found)
    return [paragraph(text)]


def claim_item(found):
    """A claim, what was measured, and what it was to be."""
    bound = f"at {'least' if found['bound'] > 0 else 'most'} {abs(found['bound']):g}"
    disturbed = ", disturbed" * bool(found["disturbed"] and not found["holds"])
    return item(f"{found['claim']}: {found['measured']:.3g} ({bound}{disturbed})")
