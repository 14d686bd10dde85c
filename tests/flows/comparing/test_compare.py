"""`koco compare`, the same from Python, and the section of the report: on a published study, and on
a small sweep that is run here, beside plain loops over its runs.
"""

import json
import re

import numpy as np
import pytest

import flows
from flows.comparing.comparison import compare, comparison_of
from flows.comparing.conclusion import MIN_BLOCKS
from flows.report.document import page_of, write_report
from flows.views.views import runs_of
from storage.results import read_curves
from tests.helpers import demsar
from tests.helpers.many_runs import put
from tests.helpers.pages import look_at, tables_of
from tests.helpers.swept import prepared, swept

SPEC = """
learner_seeds = 2
[[dataset]]
name = "signs"
order = "shuffled"
order_seeds = 3
[[dataset]]
name = "other"
[[dataset]]
name = "real"
order = "shuffled"
order_seeds = 2
[[dataset]]
name = "turned"
[[dataset]]
name = "noise"
[[learner]]
name = "OGD"
step_size = [0.01, 0.1, 0.5]
[[learner]]
name = "OjaSON"
sketch_size = [3, 6]
sketch_start = "random"
alpha = [0.5, 5]
[[learner]]
name = "AdaGrad"
step_size = [0.02, 0.2]
"""
MORE = """
[[dataset]]
name = "signs"
order = "shuffled"
order_seeds = 2
[[dataset]]
name = "real"
order = "shuffled"
order_seeds = 2
[[learner]]
name = "ONS"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Labels with and without classes, one whose weights turn halfway; a sweep, and one of another
    learner on some of it.
    """
    folder, draw = tmp_path_factory.mktemp("compare"), np.random.default_rng(0)
    X = draw.standard_normal((401, 4)) / 2
    values = X @ [0.9, -0.4, 0.1, 0.3]
    prepared(folder, "signs", X, np.where(values >= 0.0, 1, -1))
    prepared(folder, "other", X, np.where(values >= 0.3, 1, -1))
    prepared(folder, "real", X, values / 2)
    turning = np.where(np.arange(401) < 200, 1, -1)
    prepared(folder, "turned", X, np.where(values * turning >= 0.0, 1, -1))
    prepared(folder, "noise", X, np.where(draw.random(401) < 0.6, 1, -1))
    swept(folder, SPEC, "small")
    swept(folder, MORE, "more")
    return folder / "store"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A store with the results of Demšar's example."""
    store = tmp_path_factory.mktemp("published") / "store"
    rows = [
        {"dataset": dataset, "learner": learner, "mean_loss": 1 - area, "auc": area}
        for dataset, (areas, _) in demsar.TABLE.items()
        for learner, area in zip(demsar.LEARNERS, areas, strict=True)
    ]
    put(store, "demsar", None, rows)
    return store


def words(text):
    return " ".join(text.split())


def test_published_study__comes_out_as_printed(published, koco):
    done = koco("compare", "demsar", "--metric", "auc", "--store", published, status=0)
    said = words(done.stdout)
    assert "Friedman's chi-square 9.28, F 3.69, p = 0.02" in said
    assert "critical difference of mean ranks 1.25 at level 0.05" in said
    assert "Not told apart by the critical difference: C4.5+m+cf, C4.5+m, C4.5+cf, C4.5." in said
    done = koco(
        *("compare", "demsar", "--metric", "auc", "--alpha", 0.1, "--store", published, "--json"),
        status=0,
    )
    found = json.loads(done.stdout)
    ranks = {row["learner"]: f"{row['mean_rank']:.3f}" for row in found["summary"]}
    assert ranks == {
        learner: f"{rank:.3f}"
        for learner, rank in zip(demsar.LEARNERS, demsar.MEAN_RANKS, strict=True)
    }
    assert f"{found['critical_difference']:.2f}" == f"{demsar.CRITICAL[0.10]:.2f}"
    assert [set(group) for group in found["groups"]] == demsar.GROUPS
    assert found["conclusion"].startswith("The learners differ over 14 blocks")
    assert (found["n_blocks"], found["n_datasets"], found["repeats"]) == (14, 14, [1, 1])
    assert "nothing was chosen" in found["how"]
    assert len(found["pairs"]) == 6


def stream_of(block):
    """Dataset and order of a block."""
    name, _, order = block.partition(", ")
    return name, order or "as-stored"


def best_by_hand(rows, of_row):
    """The least mean of what `of_row` gives over a learner's configurations, by dataset, order and
    learner.
    """
    means = {}
    for row in rows:
        key = row["dataset"], row["order"], row["learner"]
        means.setdefault(key, {}).setdefault(row["params"], {})[
            row["order_seed"], row["learner_seed"]
        ] = of_row(row)
    return {
        key: min(np.mean(list(one.values()), axis=0).tolist() for one in found.values())
        for key, found in means.items()
    }


def test_first_half__chooses_by_the_one_half_and_compares_the_other(store):
    found = compare(store, ["small"], select="first-half")
    curves = {
        (row["run_id"], row["t"]): row
        for row in read_curves(
            store, runs_of(store, "small").column("run_id").to_pylist()
        ).to_pylist()
    }

    def halves(row):
        name = "cumulative_loss" if row["dataset"] == "real" else "mistakes"
        half, whole = (curves[row["run_id"], t][name] for t in (200, 401))
        return half / 200, (whole - half) / 201

    rows = runs_of(store, "small").to_pylist()
    expected = best_by_hand(rows, halves)  # the least pair has the least first half
    scores = {
        (*stream_of(row["block"]), row["learner"]): row["score"] for row in found.blocks.to_pylist()
    }
    assert scores == {key: pytest.approx(value[1]) for key, value in expected.items()}
    assert "the second half alone is compared" in found.how


def test_several_sweeps__are_taken_together_and_runs_count_once(store):
    one, twice = compare(store, ["small"]), compare(store, ["small", "small"])
    assert one.to_dict() == twice.to_dict()
    both = compare(store, ["small", "more"])
    assert both.learners != one.learners
    assert {row["block"] for row in both.blocks.to_pylist()} == {
        "signs, shuffled",
        "real, shuffled",
    }
    assert both.repeats == (4, 4)  # the orders and seeds that all have
    assert "noise is left out: it has no runs of ONS" in both.notes
    assert both.conclusion.startswith("Not enough datasets for a test: 2 blocks, and one needs")
    assert both.friedman is None
    assert set(both.pairs.column("p").to_pylist()) == {None}
    only = compare(store, ["small", "more"], learners=["OGD", "AdaGrad"])
    assert only.n_blocks == 5


def test_what_is_not_computed_yet__is_counted_and_named(store):
    note = json.loads((store / "sweeps" / "small.json").read_text())
    more = {"run_ids": [*note["run_ids"], "x", "y"], "datasets": {**note["datasets"], "h": "zoo"}}
    (store / "sweeps" / "unfinished.json").write_text(json.dumps({**note, **more}))
    gone = "zoo is left out: it has no runs of the learners"
    found, planned = compare(store, ["unfinished"]), len(note["run_ids"]) + 2
    assert found.left_out == [gone]
    assert found.notes == [gone, f"2 of {planned} runs of unfinished are not computed yet"]
    [section] = [one for one in page_of(store, "unfinished").figures if one.title == "Comparison"]
    assert gone in section.note
    (store / "sweeps" / "unfinished.json").unlink()


def test_result_from_python__is_that_of_the_command(store, koco):
    result = flows.results(store, "small").compare(alpha=0.1)
    done = koco("compare", "small", "--alpha", 0.1, "--store", store, "--json", status=0)
    assert json.loads(done.stdout) == json.loads(result.to_json())
    shown = result._repr_html_()
    assert "<svg" in shown
    assert all(f"<td>{name}</td>" in shown for name in result.learners)
    assert result.conclusion.replace("'", "&#x27;") in shown
    assert result.conclusion in repr(result)


def test_text__fits_the_terminal_and_says_what_was_compared(store, koco):
    done = koco("compare", "small", "--store", store, status=0)
    assert max(map(len, done.stdout.splitlines())) <= 100
    said = words(done.stdout)
    result = compare(store, ["small"])
    for text in (result.conclusion, result.how, result.meaning):
        assert words(text) in said
    assert "5 blocks" in said
    table = done.stdout.partition("\n\n")[0]
    assert re.findall(r"(?m)^[A-Z]\w+", table) == result.learners


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["smal"], "has no sweep 'smal'"),
        (["small", "--metric", "acu"], "did you mean 'auc'"),
        (["small", "--metric", "auc"], "no dataset and order with runs of all learners"),
        (["small", "--metric", "auc", "--select", "first-half"], "only known of whole streams"),
        (["small", "--alpha", "0.7"], "between 0 and 0.5"),
        (["small", "--learner", "OGDs"], "did you mean 'OGD'"),
        (["more"], "needs runs of two learners, and there are: ONS"),
    ],
)
def test_wrong_input__is_refused_in_words(store, koco, asked, said):
    done = koco("compare", *asked, "--store", store, status=2)
    assert said in words(done.stderr)


@pytest.fixture(scope="module")
def page(store):
    return write_report(store, "small").path


def test_report__has_the_comparison_as_text_table_and_pictures(store, page):
    result = compare(store, ["small"])
    told = page_of(store, "small")
    [section] = [one for one in told.figures if one.title == "Comparison"]
    assert told.small[0] == result.conclusion
    assert [row[0] for row in section.rows] == result.learners
    [chart] = section.charts
    assert [row[:2] for row in chart.rows] == [list(item) for item in result.ranks.items()]
    [rows] = [one for one in tables_of(page).values() if one and "mean rank" in one[0]]
    assert [row["learner"] for row in rows] == result.learners
    assert [float(row["mean rank"]) for row in rows] == list(result.ranks.values())
    assert result.conclusion in page.with_suffix(".md").read_text()


def test_report__of_one_learner_has_no_comparison(store):
    assert "Comparison" not in {one.title for one in page_of(store, "more").figures}


@pytest.mark.system
def test_report__with_its_comparison_is_readable_in_a_browser(page):
    look_at([page])


def test_few_blocks__have_no_test_and_more_have_one(store):
    from flows.comparing.blocks import Block, Blocks

    def found(n):
        names = ["A", "B", "C"]
        values = [np.array([[0.1, 0.2, 0.3]]) + 0.01 * k for k in range(n)]
        blocks = [
            Block(
                f"d{k}",
                f"d{k}",
                "error_rate",
                one,
                ["{}"] * 3,
                [False] * 3,
                [None] * 3,
                [None] * 3,
                ["squared"],
                1,
            )
            for k, one in enumerate(values)
        ]
        return comparison_of(Blocks(names, blocks, []))

    for n in range(1, 12):
        one = found(n)
        assert (one.friedman is None) == (one.critical_difference is None) == (n < MIN_BLOCKS)
        assert one.conclusion.startswith("Not enough" if n < MIN_BLOCKS else "The learners differ")
        # the same order everywhere: Wilcoxon's test needs eight blocks for three pairs
        told = "A is better than B and C by Wilcoxon's" in one.conclusion
        assert told == (n >= 7)
        assert one.summary.column("microseconds").null_count == 3
