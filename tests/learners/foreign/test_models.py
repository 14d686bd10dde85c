"""Foreign learners against the loops that their own libraries' users write, to the bit."""

import math

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
CLASSIFIERS = {
    "river.linear_model:LogisticRegression": {"l2": 0.01},
    "river.tree:HoeffdingTreeClassifier": {"grace_period": 20},
    "river.naive_bayes:GaussianNB": {},
    "river.forest:ARFClassifier": {"n_models": 2},
    "river.linear_model:PAClassifier": {},  # which has no probabilities
}
SGD, MLP = "sklearn.linear_model:SGDClassifier", "sklearn.neural_network:MLPClassifier"


def made(target, arguments, **more):
    module, name = target.split(":")
    return getattr(__import__(module, fromlist=[name]), name)(**arguments, **more)


def as_dictionaries(X, dense):
    return [{j: v for j, v in enumerate(row) if v or dense} for row in X.tolist()]


def of_probability(p):
    p = min(max(float(p), 1e-15), 1 - 1e-15)
    return math.log(p / (1 - p))


def river_loop(model, X, labels, score, dense=True):
    """What `score` gives before each row is learnt."""
    found = []
    for x, y in zip(as_dictionaries(X, dense), labels.tolist(), strict=True):
        found.append(score(model, x))
        model.learn_one(x, y)
    return found


def log_odds(model, x):
    """Of a classifier without probabilities, its class."""
    try:
        found = model.predict_proba_one(x)
    except NotImplementedError:
        return 1.0 if model.predict_one(x) else -1.0
    return of_probability(found.get(True, 0.0)) if found else 0.0


@pytest.mark.parametrize(("target", "form"), [*zip(CLASSIFIERS, [*INPUTS, "sparse"], strict=True)])
def test_river_s_classifiers__are_as_in_a_plain_loop(target, form):
    X = INPUTS[form]
    seeded = {"seed": 5} if "ARF" in target else {}
    model = made(target, CLASSIFIERS[target], **seeded)
    expected = river_loop(model, X, LABELS == 1.0, log_odds, form in ("dense", "single"))
    assert scores(target, CLASSIFIERS[target], X, LABELS, CUTS, seed=5).tolist() == expected


def test_river_s_regressors__are_as_in_a_plain_loop():
    target, arguments = "river.linear_model:LinearRegression", {"intercept_lr": 0.1}
    model = made(target, arguments)
    expected = river_loop(model, DENSE, REAL, type(model).predict_one)
    assert scores(target, arguments, DENSE, REAL).tolist() == expected


def scikit_loop(target, arguments, X, labels, classes=None):
    seed = {} if "NB" in target else {"random_state": 5}
    model, expected = made(target, seed | arguments), []
    for t in range(labels.size):
        x = X[t : t + 1]
        if t == 0:
            expected.append(0.0)
        elif hasattr(model, "decision_function"):
            expected.append(model.decision_function(x)[0])
        elif classes is not None:
            expected.append(of_probability(model.predict_proba(x)[0, 1]))
        else:
            expected.append(model.predict(x)[0])
        more = {} if classes is None or t else {"classes": classes}
        model.partial_fit(x, labels[t : t + 1], **more)
    return expected


@pytest.mark.parametrize(
    ("target", "arguments", "form"),
    [  # a process with scikit-learn starts in a second: not all combinations
        (SGD, {"loss": "hinge", "alpha": 0.01}, "sparse"),
        (SGD, {"loss": "log_loss"}, "single"),
        (SGD, {}, "dense"),
        ("sklearn.naive_bayes:BernoulliNB", {}, "sparse"),
        # which draws, and not by the seed of the run
        (MLP, {"hidden_layer_sizes": [3], "batch_size": 1, "random_state": 3}, "sparse"),
    ],
    ids=str,
)
def test_scikit_learn_s_classifiers__are_as_in_a_plain_loop(target, arguments, form):
    X = csr_matrix(SPARSE) if form == "sparse" else INPUTS[form]
    expected = scikit_loop(target, arguments, X, LABELS.astype(int), [-1, 1])
    found = scores(target, arguments, INPUTS[form], LABELS, CUTS, seed=5)
    assert found.tolist() == expected
    assert np.ptp(found) > 0.0


@pytest.mark.parametrize(
    ("dense", "X", "seen"),
    [
        (None, SPARSE, csr_matrix(SPARSE)),
        (True, csr_matrix(SPARSE), SPARSE),
        (False, DENSE, csr_matrix(DENSE)),
    ],
    ids=["as they are", "dense", "sparse"],
)
def test_scikit_learn_s_regressors__are_as_in_a_plain_loop_on_rows_of_the_form_that_is_asked_for(
    dense, X, seen
):
    target, arguments = "sklearn.linear_model:SGDRegressor", {"eta0": 0.1, "alpha": 0}
    expected = scikit_loop(target, arguments, seen, REAL)
    assert scores(target, arguments, X, REAL, seed=5, dense=dense).tolist() == expected


def test_scikit_learn_s_learner_without_sparse_rows__says_so():
    target = "sklearn.naive_bayes:GaussianNB"
    with pytest.raises(RuntimeError, match=r"round 1: TypeError: GaussianNB takes no sparse rows"):
        scores(target, {}, np.eye(3), np.ones(3))


@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_rows__are_the_learner_s_to_keep(form):
    X = INPUTS[form][10:]
    found = scores(f"{CLASSES}:Keeps", {}, X, REAL[10:], cuts=(3, 50))
    np.testing.assert_allclose(found[1:], X[0].sum(), rtol=1e-6)


LOGISTIC = """
from river import linear_model, optim

class Logistic(linear_model.LogisticRegression):
    def __init__(self, step_size=0.1):
        super().__init__(optimizer=optim.AdaGrad(step_size))
"""


def test_class_of_a_file__makes_an_object_of_a_number(tmp_path, monkeypatch):
    (tmp_path / "my_learners.py").write_text(LOGISTIC)
    monkeypatch.syspath_prepend(tmp_path)
    expected = river_loop(river_logistic(0.3), DENSE, LABELS == 1.0, log_odds)
    found = scores("my_learners:Logistic", {"step_size": 0.3}, DENSE, LABELS)
    assert found.tolist() == expected


def river_logistic(step_size):
    from river import linear_model, optim

    return linear_model.LogisticRegression(optimizer=optim.AdaGrad(step_size))
