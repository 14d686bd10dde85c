"""Learners in River: its own progressive validation and its own checks, and the same bits as
without it.
"""

import numpy as np
import pytest
from river import checks as river_checks, evaluate, metrics

from koco_stream import CONKONS, FOGD, OGD, ONS, Classifier, OjaSON
from koco_stream.river import RiverClassifier, RiverRegressor
from tests.helpers.linear_streams import stream
from tests.helpers.refusal import refusal

# Features of River's own data sets are as large as 7·10⁵, which a small alpha would be told about.
LEARNERS = [OjaSON(3, alpha=1e8), ONS(alpha=1e8), FOGD(step_size=0.1, n_frequencies=50)]


X, Y = stream(0, n=150, d=5, density=0.7)
X[0] = 1.0  # so that names get their numbers in the order of columns


def as_dictionaries(X):
    return [{f"x{j}": value for j, value in enumerate(row) if value} for row in X.tolist()]


@pytest.mark.parametrize(
    "learner", [OjaSON(3, alpha=0.5), CONKONS(alpha=0.5, bandwidth=2.0)], ids=repr
)
def test_progressive_validation__has_the_learner_s_own_predictions(learner):
    expected = type(learner)(**learner.get_params()).progressive(
        np.hstack([X, np.zeros((len(X), 3))]), Y
    )
    pairs = list(zip(as_dictionaries(X), Y.tolist(), strict=True))
    model, metric = RiverRegressor(learner, n_features=8), metrics.MSE()
    steps = evaluate.iter_progressive_val_score(pairs, model, metric, yield_predictions=True)
    predictions = np.array([step["Prediction"] for step in steps])
    np.testing.assert_allclose(predictions, expected, atol=1e-13)
    assert metric.get() == pytest.approx(np.mean((expected - Y) ** 2))
    assert not learner.__sklearn_is_fitted__()


# River's labels of TrumpApproval are about 40; that the learner says so is not what its checks are
# about.
@pytest.mark.filterwarnings("ignore:(a label .* is beyond clip|the first rows)")
@pytest.mark.parametrize("wrapper", [RiverRegressor, RiverClassifier])
@pytest.mark.parametrize(
    "learner",
    [LEARNERS[0], *(pytest.param(one, marks=pytest.mark.long) for one in LEARNERS[1:])],
    ids=repr,
)
def test_river_s_checks__pass(wrapper, learner):
    check_all(wrapper(learner))


def check_all(model):
    assert len([check(model.clone()) for check in river_checks.yield_checks(model)]) > 10


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"a": 1.0, "c": 1.0}, "'c' is one feature more than"),
        ({"a": "red"}, "OneHotEncoder"),
        ({"a": float("nan")}, "NaN or infinity"),
    ],
    ids=["a third feature", "a text", "no number"],
)
def test_wrong_rows__are_refused_and_learn_nothing(wrong, message):
    model = RiverRegressor(OjaSON(2), n_features=2)
    model.learn_one({"a": 1.0, "b": True}, 0.5)
    before = model.predict_one({"a": 1.0})
    refusal(message, model.learn_one, wrong, 0.5)
    assert model.predict_one({"a": 1.0, "never seen": 9.0}) == before


def test_classes__are_any_two_if_they_are_named():
    refusal("the class is 'spam'", RiverClassifier(OjaSON(2)).learn_one, {"a": 1.0}, "spam")
    spam = RiverClassifier(OjaSON(2), classes=("ham", "spam"))
    spam.learn_one({"a": 1.0}, "ham")
    assert (spam.predict_one({"a": 1.0}), spam.predict_one({"a": -1.0})) == ("ham", "spam")


def test_probabilities__are_those_of_a_classifier_if_the_loss_is_logistic():
    learner = OGD(2.0, loss="logistic", clip=800.0)
    labels, rows = (Y > 0).tolist(), as_dictionaries(X)
    model = RiverClassifier(learner, n_features=5)
    assert model.predict_proba_one(rows[0]) == {False: 0.5, True: 0.5}
    pairs = zip(rows, labels, strict=True)
    assert evaluate.progressive_val_score(pairs, model, metrics.ROCAUC()).get() > 0.6
    expected = Classifier(learner).fit(X, labels).predict_proba(X)
    found = [list(model.predict_proba_one(row).values()) for row in rows]
    np.testing.assert_allclose(found, expected, atol=1e-13)
    check_all(RiverClassifier(learner))
    refusal(
        "only a learner with loss='logistic'",
        RiverClassifier(OjaSON(2)).predict_proba_one,
        rows[0],
        by=NotImplementedError,
    )
