"""What makes a block, and what is left out: on made-up results."""

import json
import math
import tempfile
from itertools import permutations
from statistics import mean

import numpy as np
import pytest

from flows.comparing.blocks import blocks_of, views_to_compare
from flows.comparing.comparison import Comparison
from tests.helpers.many_runs import put


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
    lacking = (
        "4 of 8 repeats are left out: AdaGrad has no runs in 2; OGD has no runs in 2; ONS has no"
        " runs in 2"
    )
    assert Comparison(found).notes == [f"a, shuffled: {lacking}"]


def test_learner_that_was_stopped__is_no_candidate_for_ranks_and_is_named():
    rows = grid(["a", "b"], ["AdaGrad", "KONS", "OGD"])
    late = [{**one, "status": "stopped", "mean_loss": None, "error_rate": None} for one in rows]
    of_kons = ("a", "KONS")
    rows = [
        stopped if (one["dataset"], one["learner"]) == of_kons else one
        for one, stopped in zip(rows, late, strict=True)
    ]
    found = made(rows)
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
        assert len(found.blocks) == 2
        assert column(found, "beats_constant") == [[True, False]] * 2
        # as everywhere, by the loss too, whatever is compared
        lossy = [one | {"mean_loss": 2.0} for one in rows + some]
        assert column(made(lossy), "beats_constant")[0] == [False, False]
        summary = Comparison(found).summary.to_pylist()
        assert [one["beats_constant"] for one in summary] == ["2 of 2", "0 of 2"]


def test_learners_without_predictions__are_left_out():
    rows = [*grid("a", ["AdaGrad", "OGD"]), row("a", "KORS", 0.0) | {"mean_loss": None}]
    assert made(rows).learners == ["AdaGrad", "OGD"]


def test_data_seeds__are_repeats_and_classes_and_orders_are_blocks():
    names = ["sea,n_rows=9,data_seed=1", "sea,n_rows=9,data_seed=2"]
    [[one, _]] = made(grid(names, ["AdaGrad", "OGD"])).blocks
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
    expected = mean([2 * 0.1 / 0.31, 2 * 0.1 / (1.105 + 1.205)])
    assert compared.summary.to_pylist()[1]["difference"] == pytest.approx(expected)


def test_losses_that_differ__are_noted_where_losses_are_compared():
    rows = grid("a", ["AdaGrad", "OGD"])
    rows = [one | {"loss": "half_squared"} if one["learner"] == "OGD" else one for one in rows]
    noted = [Comparison(made(rows, metric=name)).notes for name in ("mean_loss", "error_rate")]
    assert "different losses on a, shuffled" in noted[0][0]
    assert noted[1] == []
