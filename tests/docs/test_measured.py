"""Figures in the documentation that were measured are those that are stored."""

import re

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.stats

from flows.report.papers.benchmark import KEPT
from tests.helpers.project import ROOT

PAGE = (ROOT / "docs" / "findings.md").read_text()
LINE = r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$"
MEASURED = {name: [float(x) for x in given] for name, *given in re.findall(LINE, PAGE, re.M)}


def scores():
    """The mean score of each learner of the table on each dataset of the second part."""
    rows = pq.read_table(KEPT).to_pylist()
    return {
        (row["learner"], row["source"]): float(f"{np.mean(row['scores']):.11e}")
        for row in rows
        if row["part"] == "benchmark-whole" and row["learner"] in MEASURED
    }


@pytest.mark.parametrize("learner", MEASURED)
def test_table_of_matrix_learners__is_the_benchmark_s(learner):
    found = scores()
    sources = sorted({source for _, source in found})
    ranks = np.mean(
        [scipy.stats.rankdata([found[name, s] for name in MEASURED]) for s in sources], axis=0
    )
    rank = dict(zip(MEASURED, ranks, strict=True))[learner]
    expected = [*(found[learner, s] for s in ("a9a", "cod-rna", "w8a")), rank]
    assert (np.abs(np.subtract(MEASURED[learner], expected)) <= [6e-5, 6e-5, 6e-5, 6e-3]).all()
