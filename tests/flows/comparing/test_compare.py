"""`koco compare`, the same from Python, and the section of the report: on a published study, and on
results that are drawn, beside plain loops over them.
"""

import json
import re

import numpy as np
import pytest

import flows
from flows.comparing.blocks import Blocks
from flows.comparing.comparison import Comparison, compare
from flows.comparing.words import MIN_BLOCKS
from flows.report.document import page_of, write_report
from tests.helpers import demsar
from tests.helpers.many_runs import put
from tests.helpers.pages import tables_of

# datasets with their orders, and learners with their configurations
ORDERS = {"signs": 3, "other": 0, "real": 2, "turned": 0, "noise": 0}
LEARNERS = {"OGD": 3, "OjaSON": 4, "AdaGrad": 2, "NAG": 1}
MORE = {"signs", "real"}  # of which ONS alone has run


def drawn():
    """Rows of results, with the halves of their streams; of Oja-SON with two learner seeds."""
    draw = np.random.default_rng(0)
    for dataset, orders in ORDERS.items():
        for learner, configurations in LEARNERS.items():
            for number in range(configurations if learner != "NAG" or dataset in MORE else 0):
                for order in range(orders) if orders else [None]:
                    for seed in (0, 1) if learner == "OjaSON" else [None]:
                        first, second = draw.integers(1, 90, 2).tolist()
                        losses = (draw.random(2) * 100).cumsum().tolist()
                        mistakes = [None] * 2 if dataset == "real" else [first, first + second]
                        curve = zip((200, 401), losses, mistakes, strict=True)
                        yield {
                            **{"dataset": dataset, "dataset_hash": dataset, "learner": learner},
                            **{"order": "shuffled" if orders else "as-stored"},
                            **{"order_seed": order, "learner_seed": seed, "rounds": 401},
                            **{"numbers": "own", "loss": "squared", "seconds": 1.0},
                            "params": json.dumps({"step_size": number}),
                            "mean_loss": losses[1] / 401,
                            "error_rate": mistakes[1] and mistakes[1] / 401,
                            "curve": [
                                {"t": t, "cumulative_loss": loss, "mistakes": n}
                                for t, loss, n in curve
                            ],
                        }


ROWS = [{**row, "run_id": f"{k:032d}"} for k, row in enumerate(drawn())]
SMALL = [row for row in ROWS if row["learner"] != "NAG"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with a sweep of three learners, one of another on two datasets, and one that is not
    finished.
    """
    store, more = tmp_path_factory.mktemp("compare"), [row for row in ROWS if row not in SMALL]
    small, others = ([row["run_id"] for row in rows] for rows in (SMALL, more))
    for name, ids in (("small", small), ("more", others), ("unfinished", [*small, "x", "y"])):
        put(store, name, ids, ROWS)
    note = store / "sweeps" / "unfinished.json"
    note.write_text(note.read_text().replace('"datasets": {}', '"datasets": {"h": "zoo"}'))
    rows = [
        {"dataset": dataset, "learner": learner, "mean_loss": 1 - area, "auc": area}
        for dataset, (areas, _) in demsar.TABLE.items()
        for learner, area in zip(demsar.LEARNERS, areas, strict=True)
    ]
    put(store / "published", "demsar", None, rows)
    return store


def words(text):
    return " ".join(text.split())


def test_published_study__comes_out_as_printed(store, koco):
    given = ("compare", "demsar", "--metric", "auc", "--store", store / "published")
    said = words(koco(*given, status=0).stdout)
    assert "(Friedman's test, p = 0.02)" in said
    assert "less than 1.25, the critical difference, are not told apart" in said
    found = json.loads(koco(*given, "--alpha", 0.1, "--json", status=0).stdout)
    ranks = {row["learner"]: round(row["mean_rank"], 3) for row in found["summary"]}
    assert ranks == dict(zip(demsar.LEARNERS, demsar.MEAN_RANKS, strict=True))
    assert f"{found['critical_difference']:.2f}" == f"{demsar.CRITICAL[0.10]:.2f}"
    assert found["conclusion"].startswith("The learners differ over 14 blocks")
    assert (found["n_blocks"], found["n_datasets"], found["repeats"]) == (14, 14, [1, 1])
    assert "nothing was chosen" in found["how"]
    assert len(found["pairs"]) == 6
    shown = compare(store / "published", ["demsar"], metric="auc").diagram
    assert shown.alt.startswith("Mean ranks, the best first: C4.5+m+cf 1.96, C4.5+m 2.00")
    assert shown.rows[0]["to"] - shown.rows[0]["from"] == pytest.approx(1.2535, abs=1e-3)


def test_first_half__chooses_by_the_one_half_and_compares_the_other(store):
    found = compare(store, ["small"], select="first-half")
    halves = {}
    for row in SMALL:
        at = "cumulative_loss" if row["dataset"] == "real" else "mistakes"
        half, whole = (point[at] for point in row["curve"])
        of_learner = halves.setdefault((row["dataset"], row["learner"]), {})
        of_learner.setdefault(row["params"], []).append((half / 200, (whole - half) / 201))
    # the least pair has the least first half
    expected = {
        key: min(np.mean(one, axis=0).tolist() for one in of.values()) for key, of in halves.items()
    }
    scores = {
        (row["block"].split(",")[0], row["learner"]): row["score"]
        for row in found.blocks.to_pylist()
    }
    assert scores == {key: pytest.approx(value[1]) for key, value in expected.items()}
    assert "the second half alone is compared" in found.how


def test_several_sweeps__are_taken_together_and_runs_count_once(store):
    one, twice = compare(store, ["small"]), compare(store, ["small", "small"])
    assert one.to_json() == twice.to_json()
    both = compare(store, ["small", "more"])
    assert {row["block"] for row in both.blocks.to_pylist()} == {
        "signs, shuffled",
        "real, shuffled",
    }
    assert both.repeats == (4, 6)  # orders and seeds
    assert "noise is left out: it has no runs of NAG" in both.notes
    assert both.conclusion.startswith("Not enough datasets for a test: 2 blocks, and one needs")
    assert (both.friedman, both.diagram.band) == (None, ())
    assert set(both.pairs.column("p").to_pylist()) == {None}
    assert compare(store, ["small", "more"], learners=["OGD", "AdaGrad"]).n_blocks == 5


def test_what_is_not_computed_yet__is_counted_and_named(store):
    gone, found = "zoo is left out: it has no runs of the learners", compare(store, ["unfinished"])
    missing = f"2 of {len(SMALL) + 2} runs of unfinished are not computed yet"
    assert found.notes == [gone, missing]


def test_result__is_the_same_from_python_in_a_notebook_and_in_a_terminal(store, koco):
    result = flows.results(store, "small").compare(alpha=0.1)
    given = ("compare", "small", "--alpha", 0.1, "--store", store)
    assert json.loads(koco(*given, "--json", status=0).stdout) == json.loads(result.to_json())
    shown = result._repr_html_()
    assert "<svg" in shown
    assert all(f"<td>{name}</td>" in shown for name in result.learners)
    assert result.conclusion.replace("'", "&#39;") in shown
    assert result.conclusion in repr(result)
    done = koco(*given, status=0)
    assert max(map(len, done.stdout.splitlines())) <= 100
    said = words(done.stdout)
    for text in ("5 blocks", result.conclusion, result.how, result.meaning):
        assert words(text) in said
    assert re.findall(r"(?m)^[A-Z]\w+", done.stdout.partition("\n\n")[0]) == result.learners


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["smal"], "has no sweep 'smal'"),
        (["small", "--metric", "acu"], "did you mean 'auc'"),
        (["small", "--metric", "auc"], "no dataset and order with runs of all learners"),
        (["small", "--metric", "auc", "--select", "first-half"], "only known of whole streams"),
        (["small", "--alpha", "0.7"], "between 0 and 0.5"),
        (["small", "--learner", "OGDs"], "did you mean 'OGD'"),
        (["more"], "needs runs of two learners, and there are: NAG"),
    ],
)
def test_wrong_input__is_refused_in_words(store, koco, asked, said):
    done = koco("compare", *asked, "--store", store, status=2)
    assert said in words(done.stderr)


def test_report__has_the_comparison_as_text_table_and_pictures(store):
    result, page = compare(store, ["small"]), write_report(store, "small").path
    [rows] = [one for one in tables_of(page).values() if one and "mean_rank" in one[0]]
    ranks = {row["learner"]: float(row["mean_rank"]) for row in rows}
    assert list(ranks.items()) == list(result.ranks.items())
    assert result.conclusion in page.with_suffix(".md").read_text()
    sections = {one.title: one for one in page_of(store, "small").figures}
    [chart] = sections["Comparison"].charts
    assert {row["learner"]: row["mean rank"] for row in chart.rows} == ranks
    assert "Comparison" not in {one.title for one in page_of(store, "more").figures}


def block(number):
    """A block of three learners, which are in the same order on all."""
    shared = {"title": f"d{number}", "source": f"d{number}", "metric": "error_rate", "choices": 1}
    shared |= {"params": "{}", "failed": "", "seconds": None, "beats_constant": None}
    shared |= {"losses": ["squared"], "lacking": ""}
    return [{**shared, "learner": name, "scores": [k]} for k, name in enumerate("ABC", number)]


def test_few_blocks__have_no_test_and_more_have_one():
    for n in range(1, 12):
        one = Comparison(Blocks(["A", "B", "C"], [block(k) for k in range(n)], []))
        assert (one.friedman is None) == (one.critical_difference is None) == (n < MIN_BLOCKS)
        assert one.conclusion.startswith("Not enough" if n < MIN_BLOCKS else "The learners differ")
        # Wilcoxon's test needs seven blocks for three pairs
        told = "A is better than B and C by Wilcoxon's" in one.conclusion
        assert told == (n >= 7)
        assert one.summary.column("microseconds").null_count == 3
