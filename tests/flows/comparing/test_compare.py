"""`koco compare`, the same from Python, and the section of the report: what makes a block, a
published study, and results that are drawn, beside plain loops over them. Statistics and means
beside literal definitions, and beside SciPy's.
"""

import json
import math
import re
import tempfile
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import flows
from flows import scores as our
from flows.comparing.blocks import Blocks, blocks_of, views_to_compare
from flows.comparing.comparison import Comparison, compare
from flows.comparing.words import MIN_BLOCKS
from flows.report.document import page_of, write_report
from flows.scores import deviations, differences_of, mean, means, rounded
from tests.helpers import demsar
from tests.helpers.many_runs import put
from tests.helpers.pages import tables_of
from tests.oracles import comparing as literal

# datasets with their orders, and learners with their configurations
ORDERS = {"signs": 3, "other": 0, "real": 2, "turned": 0, "noise": 0}
LEARNERS = {"OGD": 3, "OjaSON": 4, "AdaGrad": 2, "NAG": 1}
MORE = {"signs", "real"}  # of which ONS alone has run


def drawn():
    """Rows of results, with the halves of their streams; of Oja-SON with two learner seeds."""
    draw = np.random.default_rng(0)
    for (dataset, orders), (learner, count) in product(ORDERS.items(), LEARNERS.items()):
        numbers = range(count if learner != "NAG" or dataset in MORE else 0)
        seeds = (0, 1) if learner == "OjaSON" else [None]
        for number, order, seed in product(numbers, range(orders) if orders else [None], seeds):
            mistakes = draw.integers(1, 90, 2).cumsum().tolist()
            losses = (draw.random(2) * 100).cumsum().tolist()
            mistakes = [None] * 2 if dataset == "real" else mistakes
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
                    for t, loss, n in zip((200, 401), losses, mistakes, strict=True)
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
    for name, ids in (("small", small), ("more", others)):
        put(store, name, ids, ROWS)
    put(store, "unfinished", [*small, "x", "y"], (), datasets={"h": "zoo"})
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
    assert compare(store, ["small"]).to_json() == compare(store, ["small", "small"]).to_json()
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
    assert compare(store, ["unfinished"]).notes == [
        "zoo is left out: it has no runs of the learners",
        f"2 of {len(SMALL) + 2} runs of unfinished are not computed yet",
    ]


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
    for text in (result.conclusion, result.unresolved, result.how, result.meaning):
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
    assert said in words(koco("compare", *asked, "--store", store, status=2).stderr)


def test_report__has_the_comparison_as_text_table_and_pictures(store):
    result, page = compare(store, ["small"]), write_report(store, "small").path
    [rows] = [one for one in tables_of(page).values() if one and "mean_rank" in one[0]]
    ranks = {row["learner"]: float(row["mean_rank"]) for row in rows}
    assert list(ranks.items()) == list(result.ranks.items())
    first_screen = page.with_suffix(".md").read_text().partition("\n## ")[0]
    below = f"{result.conclusion}\n\nDifferences from {result.learners[0]} below "
    assert below in first_screen
    [chart] = {one.title: one for one in page_of(store, "small").figures}["Comparison"].charts
    assert {row["learner"]: row["mean rank"] for row in chart.rows} == ranks
    assert "Comparison" not in {one.title for one in page_of(store, "more").figures}


def block(number):
    """A block of three learners, which are in the same order on all."""
    shared = {
        **{"title": f"d{number}", "source": f"d{number}", "metric": "error_rate", "choices": 1},
        **{"params": "{}", "failed": "", "seconds": None, "beats_constant": None},
        **{"losses": ["squared"], "lacking": ""},
    }
    return [{**shared, "learner": name, "scores": [k]} for k, name in enumerate("ABC", number)]


def test_few_blocks__have_no_test_and_more_have_one():
    for n in range(1, 12):
        one = Comparison(Blocks(["A", "B", "C"], [block(k) for k in range(n)], []))
        assert (one.friedman is None) == (one.critical_difference is None) == (n < MIN_BLOCKS)
        assert one.conclusion.startswith("Not enough" if n < MIN_BLOCKS else "The learners differ")
        # Wilcoxon's test needs seven blocks for three pairs; one repeat has no interval
        assert ("A is better than B and C by Wilcoxon's" in one.conclusion) == (n >= 7)
        assert {*one.pairs.column("resolved_over").to_pylist()} == {"blocks" if n >= 7 else None}
        assert one.summary.column("microseconds").null_count == 3


def row(dataset, learner, error, order_seed=None, learner_seed=None, params=None, **more):
    """A row of results."""
    return {
        "dataset": dataset,
        "dataset_hash": f"hash of {dataset}",
        "order": "as-stored" if order_seed is None else "shuffled",
        "order_seed": order_seed,
        "learner_seed": learner_seed,
        "learner": learner,
        "params": json.dumps(params or {}),
        "numbers": "own",
        "status": "ok",
        "rounds": 10,
        "seconds": 1.0,
        "loss": "squared",
        "mean_loss": error + 1.0,
        "error_rate": error,
        **more,
    }


def made(rows, metric=None):
    """The blocks of rows of results."""
    with tempfile.TemporaryDirectory() as store:
        put(store, "s", None, rows)
        return blocks_of(views_to_compare(store, ["s"], metric=metric), metric)


def titles(found):
    return [block[0]["title"] for block in found.blocks]


def column(found, name):
    """A column of each block, by learner."""
    return [[row[name] for row in block] for block in found.blocks]


def grid(datasets, learners, orders=(0, 1)):
    """One configuration of each learner, in all orders; the first learner is the best."""
    return [
        row(dataset, learner, 0.1 * (k + 1) + 0.01 * order, order)
        for dataset in datasets
        for k, learner in enumerate(learners)
        for order in orders
    ]


def test_learner_that_diverged__has_the_worst_rank_there_and_is_named():
    rows = grid("abcde", ["AdaGrad", "OGD", "ONS"])
    rows[0] |= {"status": "diverged"}  # AdaGrad, in one of two orders of a
    found = made(rows)
    why = "1 of 2 runs diverged"
    assert column(found, "failed") == [[why, "", ""]] + [[""] * 3] * 4
    compared = Comparison(found)
    blocks = [one for one in compared.blocks.to_pylist() if one["learner"] == "AdaGrad"]
    assert [one["rank"] for one in blocks] == [3, 1, 1, 1, 1]
    assert compared.notes == [
        f"AdaGrad has no result on 1 of 5 blocks, and the worst rank there: a, shuffled ({why})"
    ]
    assert [one["failed"] for one in blocks] == [why, None, None, None, None]
    assert compared.summary.column("compared").to_pylist() == [None, 4, 4]
    # and a configuration that ended well is preferred to one with the smaller error
    rows += [row("a", "AdaGrad", 0.9, order, params={"step_size": 2}) for order in (0, 1)]
    [[first, *_], *_] = made(rows).blocks
    assert (first["failed"], json.loads(first["params"])) == ("", {"step_size": 2})


@pytest.mark.parametrize(
    ("dataset", "change", "metric", "said"),
    [
        ("b", {"learner": "AdaGrad"}, None, "it has no runs of OGD"),
        ("b", {"auc": None}, "auc", "no configuration of OGD has auc in each repeat"),
        ("b", {"order_seed": 7}, None, "the learners have no repeat in common (3 of 3"),
    ],
)
def test_block_without_what_is_compared__is_left_out_and_named(dataset, change, metric, said):
    rows = [one | {"auc": 0.5} for one in grid("ab", ["AdaGrad", "OGD"])]
    is_changed = {"dataset": dataset, "learner": "OGD"}.items()
    rows = [one | change if is_changed <= one.items() else one for one in rows]
    compared = Comparison(made(rows, metric=metric))
    assert compared.notes[0].startswith(f"b, shuffled is left out: {said}")
    assert len(compared.notes) == 1
    assert compared.n_blocks == 1


def test_repeats_that_not_all_learners_have__are_counted_and_named():
    rows = grid("a", ["AdaGrad", "OGD"], orders=(0, 1, 2))
    rows += [row("a", "ONS", 0.5 + seed, order, seed) for order in (1, 2, 4) for seed in (0, 1)]
    found = made(rows)
    # by order and learner seed
    expected = [[one, 0.1 + one, 0.5 + seed] for one in (0.11, 0.12) for seed in (0, 1)]
    [scores] = column(found, "scores")
    assert np.allclose(np.transpose(scores), expected, rtol=1e-12)
    assert Comparison(found).notes == [
        "a, shuffled: 4 of 8 repeats are left out: AdaGrad has no runs in 2; OGD has no runs in 2;"
        " ONS has no runs in 2"
    ]


def test_learner_that_was_stopped__is_no_candidate_for_ranks_and_is_named():
    late = {"status": "stopped", "mean_loss": None, "error_rate": None}
    rows = grid(["a", "b"], ["AdaGrad", "KONS", "OGD"])
    found = made(
        [one | late if (one["dataset"], one["learner"]) == ("a", "KONS") else one for one in rows]
    )
    assert (found.learners, titles(found)) == (["AdaGrad", "OGD"], ["a, shuffled", "b, shuffled"])
    [said] = found.left_out
    assert said.startswith("KONS is left out: time_limit stopped runs of it on a")


@pytest.mark.parametrize(
    ("value", "metric"), [(math.nan, "mean_loss"), (math.inf, "auc"), (-math.inf, "auc")]
)
def test_score_that_is_no_number__is_a_learner_without_a_result(value, metric):
    rows = [one | {"auc": 0.5} for one in grid("ab", ["AdaGrad", "OGD"])]
    rows[0] |= {metric: value}
    compared = Comparison(made(rows, metric=metric))
    assert compared.notes[0].endswith("there: a, shuffled (1 of 2 runs came to no number)")
    [worst] = [row for row in compared.blocks.to_pylist() if row["score"] is None]
    assert (worst["learner"], worst["block"], worst["rank"]) == ("AdaGrad", "a, shuffled", 2.0)
    json.loads(compared.to_json(), parse_constant=pytest.fail)


@pytest.mark.parametrize(("metric", "scale"), [("auc", 1.0), ("rmse", 1e9), ("mean_loss", 1e-9)])
def test_same_scores_in_another_order__are_ties_everywhere_but_where_they_are_others(metric, scale):
    """Six learners have the same three scores in all orders, and the last is worse on one block."""
    names = ["AdaGrad", "FTRLProximal", "NAG", "OGD", "ONS", "RPSON", "SAdaGrad"]
    sign = -1 if metric == "auc" else 1
    rows = []
    for dataset in "abcdef":
        for name, which in zip(names, [*permutations(range(3)), (0, 1, 2)], strict=True):
            worse = 1.5 if (dataset, name) == ("c", "SAdaGrad") else 1.0
            for order, k in enumerate(which):
                score = sign * scale * worse * (0.1, 0.7, 0.3)[k]
                other = {"mean_loss": 0.5, metric: score, f"constant_{metric}": 3.0}
                rows.append(row(dataset, name, 0.5, order) | other)
    rows = [{**one, "constant_error_rate": 0.6, "constant_mean_loss": 0.6} for one in rows]
    found = Comparison(made(rows, metric=metric))
    ranks = [found.ranks[name] for name in names]
    assert ranks[:6] == [pytest.approx((5 * 4 + 3.5) / 6)] * 6
    assert ranks[6] == pytest.approx((5 * 4 + 7) / 6)
    assert all(one["score"] * sign > 0 for one in found.blocks.to_pylist())  # as it was measured
    for pair in found.pairs.to_pylist():
        last = "SAdaGrad" == pair["other"]
        assert (pair["wins"], pair["losses"], pair["ties"]) == (last, 0, 6 - last)
        assert (pair["difference"] == 0.0) != last
        assert pair["p_alone"] == 1.0


def test_constant__is_a_learner_where_it_ran_everywhere_and_else_what_others_beat():
    known = {"constant_error_rate": 0.15, "constant_mean_loss": 2.0}
    rows = [one | known for one in grid("ab", ["AdaGrad", "OGD"])]
    everywhere = [row(d, "Constant", 0.15, order) | known for d in "ab" for order in (0, 1)]
    assert made(rows + everywhere).learners == ["AdaGrad", "Constant", "OGD"]
    for some in (everywhere[:2], []):
        found = made(rows + some)
        assert found.learners == ["AdaGrad", "OGD"]
        assert column(found, "beats_constant") == [[True, False]] * 2
        assert [one["beats_constant"] for one in Comparison(found).summary.to_pylist()] == [
            "2 of 2",
            "0 of 2",
        ]


def test_learners_without_predictions__are_left_out():
    rows = [*grid("a", ["AdaGrad", "OGD"]), row("a", "KORS", 0.0) | {"mean_loss": None}]
    assert made(rows).learners == ["AdaGrad", "OGD"]


def test_data_seeds__are_repeats_and_classes_and_orders_are_blocks():
    [[one, _]] = made(
        grid(["sea,n_rows=9,data_seed=1", "sea,n_rows=9,data_seed=2"], ["AdaGrad", "OGD"])
    ).blocks
    assert (len(one["scores"]), one["source"]) == (4, "sea")
    rows = grid("a", ["AdaGrad", "OGD"])
    rows += [one | {"positive_class": k} for one in rows for k in (1.0, 2.0)]
    rows += [row("a", learner, 0.5) for learner in ("AdaGrad", "OGD")]
    found = made(rows)
    assert titles(found) == ["a", "a, shuffled", "a:1, shuffled", "a:2, shuffled"]
    assert Comparison(found).n_datasets == 1


def test_metric__is_the_error_rate_where_there_are_classes_and_else_the_loss():
    rows = grid("ab", ["AdaGrad", "OGD"])
    rows = [one | ({"error_rate": None} if one["dataset"] == "b" else {}) for one in rows]
    compared = Comparison(made(rows))
    assert compared.relative
    assert compared.metrics == ["error_rate", "mean_loss"]
    # the loss of an error of 0.2 is 1.2: relative to the mean of the two
    expected = np.mean([2 * 0.1 / 0.31, 2 * 0.1 / (1.105 + 1.205)])
    assert compared.summary.to_pylist()[1]["difference"] == pytest.approx(expected)


def test_losses_that_differ__are_noted_where_losses_are_compared():
    rows = grid("a", ["AdaGrad", "OGD"])
    rows = [one | {"loss": "half_squared"} if one["learner"] == "OGD" else one for one in rows]
    noted = [Comparison(made(rows, metric=name)).notes for name in ("mean_loss", "error_rate")]
    assert "different losses on a, shuffled" in noted[0][0]
    assert noted[1] == []


AREAS = -np.array([areas for areas, _ in demsar.TABLE.values()])  # lower is better
scores = st.tuples(st.integers(2, 12), st.integers(2, 6)).flatmap(
    lambda shape: arrays(float, shape, elements=st.integers(0, 5).map(float))
)
shares = st.floats(0.0, 1.0)


def test_published_example__has_the_ranks_and_figures_printed_there():
    assert our.ranks_of(AREAS).tolist() == [list(printed) for _, printed in demsar.TABLE.values()]
    found = our.friedman(AREAS)
    assert f"{found.chi_square:.2f}" == f"{demsar.CHI_SQUARE:.2f}"
    assert f"{found.f:.2f}" == f"{demsar.F:.2f}"
    assert found.p < 0.05  # "we reject the null-hypothesis"
    for alpha, printed in demsar.CRITICAL.items():
        assert f"{our.critical_difference(4, 14, alpha):.2f}" == f"{printed:.2f}"


@given(scores)
def test_friedman__is_scipys_without_its_correction_for_ties(table):
    n, k = table.shape
    found = our.friedman(table)
    ties = sum(
        int(count) ** 3 - int(count)
        for row in table
        for count in np.unique(row, return_counts=True)[1]
    )
    correction = 1 - ties / (n * (k**3 - k))
    if k > 2 and correction > 1e-9:  # SciPy's is for three learners or more
        theirs = scipy.stats.friedmanchisquare(*table.T)
        assert found.chi_square == pytest.approx(theirs.statistic * correction, abs=1e-9)
    if np.isfinite(found.f):
        degrees = k - 1, (k - 1) * (n - 1)
        assert found.p == pytest.approx(scipy.stats.f.sf(found.f, *degrees), abs=1e-12)


def test_friedman__of_learners_in_the_same_order_everywhere_and_of_equal_ones():
    chi_square, *f_and_p = our.friedman(np.tile([1.0, 2.0, 3.0], (6, 1)))
    assert (chi_square, f_and_p) == (pytest.approx(12.0), [np.inf, 0.0])
    assert our.friedman(np.ones((6, 3))) == (0.0, 0.0, 1.0)


@given(scores, st.randoms(use_true_random=False))
def test_ranks__are_the_literal_ones_and_do_not_depend_on_scale_or_names(table, random):
    ranks = our.ranks_of(table).mean(axis=0)
    assert our.ranks_of(table).tolist() == [literal.ranks(row) for row in table.tolist()]
    # another monotone map of each block, which keeps the ties
    maps = [lambda x: x**3 - 7, np.exp, lambda x: 2 * x + 1]
    assert our.ranks_of(np.array([random.choice(maps)(row) for row in table])).mean(
        axis=0
    ) == pytest.approx(ranks)
    order = random.sample(range(table.shape[1]), table.shape[1])
    assert our.ranks_of(table[:, order]).mean(axis=0) == pytest.approx(ranks[order])


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_wilcoxon__is_the_enumeration_of_all_signs(values):
    found = our.wilcoxon(np.array(values, float))
    assert found == pytest.approx(float(literal.wilcoxon(values)))
    assert found == our.wilcoxon(-np.array(values, float))


def test_wilcoxon__with_infinite_missing_or_equal_values():
    assert our.wilcoxon(np.array([np.inf, 1.0, 2.0])) == our.wilcoxon(np.array([9.0, 1.0, 2.0]))
    assert our.wilcoxon(np.array([np.nan, 1.0, 2.0])) == our.wilcoxon(np.array([1.0, 2.0]))
    assert our.wilcoxon(np.zeros(4)) == our.wilcoxon(np.array([])) == 1.0
    assert our.wilcoxon(np.arange(1.0, 9.0)) == our.least_p(8)
    # that only rounding makes unequal
    assert our.wilcoxon(np.array([0.3 - 0.2, 0.1 - 0.2, 0.5])) == our.wilcoxon(
        np.array([1.0, -1.0, 5.0])
    )


@given(st.lists(shares, max_size=8), shares)
def test_holm__rejects_what_the_procedure_rejects(p_values, alpha):
    corrected = our.holm(p_values)
    near = [p for p in p_values for m in range(1, 9) if abs(p * m - alpha) < 1e-9]
    if not near:  # rounding decides there
        found = {which for which, p in enumerate(corrected) if p <= alpha}
        assert found == literal.rejected_by_holm(p_values, alpha) or alpha == 1.0
    assert all(p <= c <= 1.0 for p, c in zip(p_values, corrected, strict=True))


def test_bootstrap__is_the_same_each_time_and_that_of_the_normal_distribution():
    values = np.random.default_rng(3).standard_normal(400)
    repeats = [np.array([[0.0, value]]) for value in values]
    found = our.bootstrap(repeats, 0, False, 0.05)
    assert found == our.bootstrap(repeats, 0, False, 0.05)
    assert found[0] == (0.0, 0.0, 0.0)
    half = 1.96 * values.std() / np.sqrt(400)
    ends = values.mean() - half, values.mean() + half
    assert found[1][0] == pytest.approx(values.mean())
    assert found[1][1:] == pytest.approx(ends, abs=0.15 * half)


def test_bootstrap__resamples_repeats_where_there_is_one_block_and_leaves_failures_out():
    one = [np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 4.0]])]
    assert our.bootstrap(one, 0, False, 0.05)[1] == (pytest.approx(7 / 3), 1.0, 4.0)
    assert our.bootstrap([one[0][:1]], 0, False, 0.05)[1] == (1.0, None, None)
    repeats = [np.array([[0.0, 1.0, np.inf]]), np.array([[0.0, 3.0, np.inf]])]
    assert our.bootstrap(repeats, 0, False, 0.05)[1:] == [(2.0, 1.0, 3.0), (None, None, None)]
    worse = our.bootstrap([*repeats, np.array([[0.0, np.inf, 5.0]])], 0, False, 0.05)
    assert [mean for mean, *_ in worse] == [0.0, 2.0, 5.0]


@pytest.mark.parametrize(
    ("n", "level", "drawn"),
    [
        (6, 0.05, lambda draw, size: draw.standard_normal(size)),
        (10, 0.05 / 3, lambda draw, size: draw.laplace(size=size)),
        (14, 0.05, lambda draw, size: draw.exponential(size=size) - 1.0),
    ],
)
def test_resolution__has_the_power_that_it_states_by_wilcoxons_test(n, level, drawn):
    values = drawn(np.random.default_rng(0), (400, 3, n))
    calls = [
        our.wilcoxon(again + least) <= level and again.mean() + least > 0.0
        for seen, *later in values
        for least, _ in [our.resolution(seen, [], level)]
        for again in later
    ]
    assert 0.75 <= np.mean(calls) <= 0.85


@pytest.mark.parametrize(("n_blocks", "n_repeats"), [(1, 2), (1, 20), (4, 3)])
def test_resolution__has_the_power_that_it_states_by_intervals(n_blocks, n_repeats):
    values = np.random.default_rng(0).standard_normal((400, 5, n_blocks, n_repeats))
    least = [our.resolution(np.zeros(n_blocks), seen, 0.05)[0] for seen in values[:, 0]]
    errors = values.var(axis=3, ddof=1) / n_repeats
    freedom = errors.sum(axis=2) ** 2 / (errors**2 / (n_repeats - 1)).sum(axis=2)
    half = scipy.stats.t.ppf(0.975, freedom) * np.sqrt(errors.sum(axis=2)) / n_blocks
    calls = np.array(least)[:, None] + values.mean(axis=(2, 3)) > half
    assert 0.75 <= calls[:, 1:].mean() <= 0.85


def test_resolution__of_equal_missing_and_too_few_values():
    values = np.array([0.3, -0.1, 0.2, 0.15, -0.2, 0.25, 0.4])
    found, over = our.resolution(values, [], 0.05)
    assert our.resolution(np.array([*values, np.nan, -np.inf]), [], 0.05) == (found, "blocks")
    assert our.resolution(-4.0 * values, [], 0.05) == (pytest.approx(4.0 * found), over)
    for same in (0.1, 0.0):
        assert our.resolution(np.full(6, same), [], 0.05) == (0.0, "blocks")
        assert our.resolution(values[:5], [np.full(3, same)], 0.05) == (0.0, "repeats")
    # where even six of six are not called; and a block on which a learner failed is left out
    assert our.resolution(values[:6], [values, np.full(3, np.inf)], 0.03) == our.resolution(
        values[:1], [values], 0.03
    )
    for repeats in ([values, values[:1]], [np.full(3, np.nan)], []):
        assert our.resolution(values[:5], repeats, 0.05) == (None, None)


def test_equal_learners__are_seldom_called_different():
    draw = np.random.default_rng(0)
    tables = [
        [[one | {"scores": draw.random(2).tolist()} for one in block(k)] for k in range(8)]
        for _ in range(120)
    ]
    found = [Comparison(Blocks(["A", "B", "C"], blocks, [])) for blocks in tables]
    assert 1 <= sum(" is better " in one.conclusion for one in found) <= 0.065 * 120


@given(
    st.floats(0, 1e6, allow_subnormal=False),
    st.floats(0, 1e6, allow_subnormal=False),
    st.floats(1e-3, 1e3),
)
def test_relative_differences__do_not_depend_on_the_unit(a, b, unit):
    found = our.differences(np.array([a, b]), np.array(b), True)
    assert found[1] == 0.0
    assert -2.0 <= found[0] <= 2.0
    assert np.sign(found[0]) == np.sign(a - b) or abs(a - b) < 1e-300
    scaled = our.differences(np.array([unit * a]), np.array(unit * b), True)[0]
    assert scaled == pytest.approx(found[0], rel=1e-6, abs=1e-9)


def test_differences__to_and_of_failed_learners():
    assert our.differences(np.array([1.0, np.inf, 2.0]), np.array(1.0), True)[:2].tolist() == [
        0.0,
        np.inf,
    ]
    assert our.differences(np.array([1.0, np.inf]), np.array(np.inf), False).tolist() == [
        -np.inf,
        0,
    ]


numbers = st.floats(allow_nan=False, allow_infinity=False)
rows = st.lists(st.one_of(numbers, st.floats(0, 1), st.floats(1e8, 1e9)), min_size=1, max_size=12)


@given(rows, st.randoms(use_true_random=False))
def test_mean__does_not_depend_on_the_order_of_its_terms(values, random):
    assert mean(random.sample(values, len(values))) == mean(values)
    found = deviations([random.sample(values, len(values)), values])
    assert found[0] == found[1]


@given(rows)
def test_mean__is_that_of_the_exact_sum_in_twelve_digits(values):
    exact = sum(map(Fraction, values)) / len(values)
    size = sum(abs(Fraction(value)) for value in values) / len(values)
    if 1e-280 < size < 1e307:
        # half a unit of the twelfth digit, or what is below the fifteenth one of the terms
        assert (
            abs(Fraction(mean(values)) - exact)
            <= Fraction("5.01e-12") * abs(exact) + Fraction("1e-14") * size
        )
        assert mean(values) == float(f"{mean(values):.11e}")


@pytest.mark.parametrize("n", [3, 7, 9, 1000, 40_960, 581_012])
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9, -1e-18])
def test_means__of_shares_with_the_same_sum_are_equal(n, scale):
    """Thirteen digits end in a 5 for some k/40,960: what is half a unit is rounded one way too."""
    by_sum = {}
    for counts in combinations_with_replacement(range(1, n, n // 9 + 1), 3):
        by_sum.setdefault(sum(counts), []).append([k / n * scale for k in counts])
    found = [set(means(some).tolist()) for some in by_sum.values()]
    assert all(len(one) == 1 for one in found)
    assert len(set.union(*found)) == len(by_sum)  # and others are not


@given(st.floats(1e-280, 1e300), st.sampled_from([1, -1]), st.floats(-2e-13, 2e-13))
def test_rounded__is_the_same_for_what_differs_in_the_last_bits_only(value, sign, change):
    once = float(rounded(sign * value))
    assert rounded(once) == rounded(once * (1 + change)) == once
    assert rounded(once * (1 + 2e-11)) != once


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([0.5, math.nan], None),
        ([math.inf, -math.inf], None),
        ([-math.inf], None),
        ([1.5e308] * 3, 1.5e308),
        ([1e308, -1e308, 3.0], 0.0),
        ([0.1, 0.2, -0.3], 0.0),
        ([-0.0], 0.0),
        ([5e-324], 5e-324),
    ],
)
def test_mean__of_no_numbers_and_of_extreme_ones(values, expected):
    assert repr(mean(values)) == repr(expected)  # no zero has a sign


def test_differences__have_no_digits_that_their_terms_lack():
    ones, others = np.array([[0.3, 0.7, 3e9, 0.5, np.inf], [0.2, 0.8, 1.0, 0.5, 1.0]])
    assert differences_of(ones, others).to_pylist() == [0.1, -0.1, 3e9 - 1, 0.0, None]
