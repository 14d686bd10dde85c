"""The benchmark: its pages say what the kept table has, which is of the packaged sweeps."""

import json
import re
import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import rankdata

from docs.measured import parts_of
from flows.report.papers.benchmark import (
    KEPT,
    PARTS,
    differing,
    part_figures,
    stored_table,
    table_of,
)
from flows.reproduce import SWEEPS, prepared_datasets
from flows.sweeping.search import is_drawn
from tests.helpers.project import ROOT


@pytest.fixture(scope="module")
def kept():
    """The rows of the kept table, by part, title and learner."""
    rows = {}
    for row in pq.read_table(KEPT).to_pylist():
        rows.setdefault(row["part"], {}).setdefault(row["title"], {})[row["learner"]] = row
    return rows


def test_pages__have_ranks_and_scores_of_the_stored_table(kept):
    """Ranks and means are computed here again, by SciPy and NumPy. The documentation's page has the
    ranks, that of `koco reproduce benchmark` both.
    """
    assert list(kept) == list(PARTS)
    sections = re.split(r"^## ", (ROOT / "docs" / "benchmark.md").read_text(), flags=re.M)
    in_docs = {title: text for title, _, text in (one.partition("\n") for one in sections)}
    parts = parts_of(stored_table())
    for part, blocks in kept.items():
        means = {
            title.split(",")[0].split(":")[0]: {
                name: float(f"{np.mean(row['scores']):.11e}") for name, row in rows.items()
            }
            for title, rows in blocks.items()
        }
        names = list(next(iter(means.values())))
        ranks = np.mean([rankdata([one[name] for name in names]) for one in means.values()], axis=0)
        expected = pytest.approx(dict(zip(names, ranks, strict=True)), rel=5e-3)
        ranked, scores = part_figures(part, parts[part])
        found = re.findall(r"(\w+)\s([\d.]+)\s\([\d.]+\)", in_docs[PARTS[part][0]])
        assert {name: float(rank) for name, rank in found} == expected
        assert {row["learner"]: row["mean_rank"] for row in ranked.rows} == expected
        assert [row["dataset"] for row in scores.rows] == list(means)
        for row in scores.rows:
            for name in names:
                score = means[row["dataset"]][name]
                assert row[name] == (None if np.isinf(score) else pytest.approx(score, rel=1e-11))


def test_stored_table__is_of_the_sweeps_as_they_are_packaged(kept):
    """Another range, learner or dataset in a sweep file needs the benchmark to be run again."""
    for part, blocks in kept.items():
        content = tomllib.loads((SWEEPS / f"{part}.toml").read_text())
        assert {rows["Constant"]["source"] for rows in blocks.values()} == {
            name.split(",")[0] for name in prepared_datasets(part)
        }
        tables = {table["name"]: table for table in content["learner"]}
        orders = {table["order_seeds"] for table in content["dataset"]}
        for rows in blocks.values():
            assert rows.keys() == tables.keys()
            for name, row in rows.items():
                assert len(row["scores"]) == content["learner_seeds"] * orders.copy().pop()
                for key, value in tables[name].items():
                    if key != "name":
                        assert is_allowed(json.loads(row["params"]).get(key), value)


def is_allowed(chosen, value):
    """The chosen value is the fixed one, or in the range that it is drawn from."""
    if not is_drawn(value):
        return chosen == value
    ((kind, given),) = value.items()
    return chosen in given if kind == "choice" else given[0] <= chosen <= given[1]


def test_stored_table__goes_to_blocks_and_back_and_a_last_bit_is_seen():
    table = stored_table()
    parts = parts_of(table)
    assert table_of(parts).equals(table)
    for part, found in parts.items():
        assert differing(found, part, table) == []
    rows = table.to_pylist()
    rows[3]["scores"][1] = float(np.nextafter(rows[3]["scores"][1], 1.0))
    changed = pa.Table.from_pylist(rows, table.schema)
    part, title, learner = (rows[3][name] for name in ("part", "title", "learner"))
    assert differing(parts[part], part, changed) == [f"{learner} on {title}"]
    ranks, scores = part_figures(part, parts_of(changed)[part])
    [claim] = ranks.claims
    assert (claim["holds"], claim["came_out"]) == (False, f"1 differ: {learner} on {title}")
    assert part_figures(part, parts[part])[0].claims[0]["holds"]
    assert len(scores.rows) == len(parts[part].blocks)
