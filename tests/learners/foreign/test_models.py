"""Foreign learners against the loops that their own libraries' users write, to the bit."""

import math
from pkgutil import resolve_name

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from tests.helpers.foreign import CLASSES, scores
from tests.helpers.linear_streams import stream

river = pytest.importorskip("river", reason="needs River: pip install 'koco-stream[river]'")
sklearn = pytest.importorskip("sklearn", reason="needs scikit-learn: pip install scikit-learn")

SPARSE, REAL = stream(0, n=120, d=12)
DENSE = np.where(SPARSE == 0.0, 0.25, SPARSE)
MIXED = np.where(np.arange(120)[:, None] < 60, DENSE, SPARSE)  # some blocks have no zeros
LABELS = np.where(REAL >= 0.0, 1.0, -1.0)
INPUTS = {"sparse": SPARSE, "dense": DENSE, "single": DENSE.astype(np.float32), "mixed": MIXED}
CUTS = (*range(20), 50, 50, 73)  # where blocks end
SGD, REGRESSOR = "sklearn.linear_model:SGDClassifier", "sklearn.linear_model:SGDRegressor"


def of_probability(p):
    p = min(max(float(p), 1e-15), 1 - 1e-15)
    return math.log(p / (1 - p))


def river_score(model, x):
    if not hasattr(model, "predict_proba_one"):
        return model.predict_one(x)
    try:
        found = model.predict_proba_one(x)
    except NotImplementedError:  # a classifier without probabilities
        return 1.0 if model.predict_one(x) else -1.0
    return of_probability(found.get(True, 0.0)) if found else 0.0


@pytest.mark.parametrize(
    ("target", "arguments", "form"),
    [
        ("river.linear_model:LogisticRegression", {"l2": 0.01}, "sparse"),
        ("river.tree:HoeffdingTreeClassifier", {"grace_period": 20}, "dense"),
        ("river.naive_bayes:GaussianNB", {}, "single"),
        ("river.forest:ARFClassifier", {"n_models": 2}, "mixed"),
        ("river.linear_model:PAClassifier", {}, "sparse"),
        ("river.linear_model:LinearRegression", {"intercept_lr": 0.1}, "dense"),
    ],
)
def test_river_s_learners__are_as_in_a_plain_loop(target, arguments, form):
    model = resolve_name(target)(**arguments, **{"seed": 5} if "ARF" in target else {})
    labels = LABELS if hasattr(model, "predict_proba_one") else REAL
    expected = []
    for row, y in zip(INPUTS[form].tolist(), labels.tolist(), strict=True):
        x = {j: v for j, v in enumerate(row) if v or form in ("dense", "single")}
        expected.append(river_score(model, x))
        model.learn_one(x, y == 1.0 if labels is LABELS else y)
    assert scores(target, arguments, INPUTS[form], labels, CUTS, seed=5).tolist() == expected


def scikit_score(model, x):
    if hasattr(model, "decision_function"):
        return model.decision_function(x)[0]
    if hasattr(model, "predict_proba"):
        return of_probability(model.predict_proba(x)[0, 1])
    return model.predict(x)[0]


@pytest.mark.parametrize(
    ("target", "arguments", "X", "dense", "seen"),
    [  # a process with scikit-learn starts in a second: not all combinations
        (SGD, {"loss": "hinge", "alpha": 0.01}, SPARSE, None, csr_matrix(SPARSE)),
        (SGD, {"loss": "log_loss"}, INPUTS["single"], None, INPUTS["single"]),
        (SGD, {}, DENSE, None, DENSE),
        ("sklearn.naive_bayes:BernoulliNB", {}, SPARSE, None, csr_matrix(SPARSE)),
        # which draws, and not by the seed of the run
        (
            "sklearn.neural_network:MLPClassifier",
            {"hidden_layer_sizes": [3], "batch_size": 1, "random_state": 3},
            SPARSE,
            None,
            csr_matrix(SPARSE),
        ),
        (REGRESSOR, {"eta0": 0.1}, SPARSE, None, csr_matrix(SPARSE)),
        (REGRESSOR, {"eta0": 0.1, "alpha": 0}, csr_matrix(SPARSE), True, SPARSE),
        (REGRESSOR, {"alpha": 0}, DENSE, False, csr_matrix(DENSE)),
    ],
)
def test_scikit_learn_s_learners__are_as_in_a_plain_loop_on_rows_of_the_form_that_is_asked_for(
    target, arguments, X, dense, seen
):
    seed = {} if "NB" in target else {"random_state": 5}
    model, expected = resolve_name(target)(**seed | arguments), [0.0]
    labels = REAL if target == REGRESSOR else LABELS.astype(int)
    first = {} if target == REGRESSOR else {"classes": [-1, 1]}
    model.partial_fit(seen[:1], labels[:1], **first)
    for t in range(1, labels.size):
        expected.append(scikit_score(model, seen[t : t + 1]))
        model.partial_fit(seen[t : t + 1], labels[t : t + 1])
    found = scores(target, arguments, X, labels.astype(float), CUTS, seed=5, dense=dense)
    assert found.tolist() == expected
    assert np.ptp(found) > 0.0


def test_scikit_learn_s_learner_without_sparse_rows__says_so():
    target = "sklearn.naive_bayes:GaussianNB"
    with pytest.raises(RuntimeError, match=r"round 1: TypeError: GaussianNB takes no sparse rows"):
        scores(target, {}, np.eye(3), np.ones(3))


@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_rows__are_the_learner_s_to_keep(form):
    X = INPUTS[form][10:]
    found = scores(f"{CLASSES}:Keeps", {}, X, REAL[10:], cuts=(3, 50))
    np.testing.assert_allclose(found[1:], X[0].sum(), rtol=1e-6)
