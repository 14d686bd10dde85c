"""Regret beside its bound: bounds are above the regrets of learners, and what has none says why."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from flows.report.document import page_of
from flows.report.regret import bounds_of, why_not
from koco_stream import FDSON, ONS
from koco_stream.losses import curvature_of
from koco_stream.streams.manifest import load_manifest
from tests.helpers.many_runs import put
from tests.helpers.swept import prepared

SIGMA = curvature_of("squared", 1.0)
PARAMS = {
    **{"loss": "squared", "clip": 1.0, "alpha": 0.5, "curvature": SIGMA},
    "curvature_schedule": "constant",
}


def rows_and_labels():
    draw = np.random.default_rng(2)
    X = draw.uniform(-0.5, 0.5, (400, 8)) * 1.5 ** -np.arange(8)
    return X, np.clip(X @ draw.standard_normal(8) + 0.1 * draw.standard_normal(400), -1, 1)


@pytest.mark.parametrize(
    ("learner", "model", "more"),
    [
        ("KONS", ONS, {}),
        ("KONS", ONS, {"fit_intercept": True}),
        ("ONS", ONS, {"fit_intercept": True}),
        ("ONS", ONS, {"curvature": 1.0}),
        ("ONS", ONS, {"curvature_schedule": "decreasing"}),
        ("FDSON", FDSON, {"sketch_size": 3, "fit_intercept": True}),
    ],
)
def test_bound__is_above_the_regret_and_a_curvature_s_excess_grows(learner, model, more):
    X, y = rows_and_labels()
    losses = np.cumsum((model(alpha=0.5, **more).progressive(X, y) - y) ** 2)
    found = bounds_of(csr_array(X), y, learner, PARAMS | more, [20, 400])
    assert all(losses[t - 1] - competitor <= bound for t, competitor, bound in found)
    if "curvature" in more:
        assert found[1][2] - found[0][2] > 2 * 16 * (1.0 - SIGMA) * 380
    assert bounds_of(csr_array(X), 2 * y / np.abs(y).max(), learner, PARAMS | more, [20]) is None


WHOLE = {"datasets": 1, "order": "as-stored", "max_rows": None, "multiclass": None, "rounds": 400}


@pytest.mark.parametrize(
    ("learner", "row", "params", "said"),
    [
        ("OGD", {}, {}, "no theorem here"),
        ("KONS", {}, {"curvature": 1.0}, "above the loss's"),
        ("ONS", {"rounds": 2001}, {}, "2,001 rounds"),
        ("ONS", {"datasets": 2}, {}, "several data seeds"),
        ("ONS", {"order": "shuffled", "max_rows": 9}, {}, "from seed to seed"),
        ("OjaSON", {}, {}, "no theorem here"),
        ("FDSON", {}, {"diagonal": True}, "diagonal"),
        ("FDSON", {}, {"curvature_schedule": "decreasing"}, "constant"),
        ("FDSON", {}, {}, ""),
    ],
)
def test_bound__that_there_is_not_has_its_reason(learner, row, params, said):
    found = why_not(WHOLE | row | {"learner": learner}, PARAMS | params, True)
    assert said in found
    assert bool(found) == bool(said)


def test_section__has_bounds_of_what_the_store_has_and_reasons_for_the_rest(tmp_path):
    X, y = rows_and_labels()
    store = prepared(tmp_path, "plain", X, y)
    shared = {"dataset": "plain", "dataset_hash": load_manifest(store, "plain").dataset_hash}
    shared |= {"rounds": 400, "loss": "squared", "mean_loss": 0.1, "regret": 7.0}
    given = {"ONS": PARAMS, "FDSON": PARAMS | {"sketch_size": 2}, "OjaSON": PARAMS}
    rows = [
        {**shared, "learner": learner, "params": json.dumps(params), "curve": curve}
        for learner, params in given.items()
        for curve in [[{"t": t, "cumulative_loss": t / 10} for t in (10, 20, 50, 100, 400)]]
    ]
    rows.append({**rows[0], "dataset": "gone", "dataset_hash": "gone"})
    put(store, "s", None, rows)
    [figure] = [one for one in page_of(store, "s").figures if one.title == "Regret"]
    bounds = {f"{row['learner']}, bound": row["bound"] for row in figure.rows if row["bound"]}
    [chart] = figure.charts
    last = {row["learner"]: row["regret"] for row in chart.rows if row["round t"] == 400}
    assert bounds.items() <= last.items()
    assert last.keys() == {*bounds, "ONS", "FDSON"}
    assert {row["round t"] for row in chart.rows} == {10, 400}
    said = (
        "Theorem 2 of Luo",
        "Theorem 3 of Luo",
        "OjaSON: no theorem here",
        "no longer in the store",
    )
    assert [words for words in said if words not in figure.note] == []
