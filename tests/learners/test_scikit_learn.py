"""scikit-learn's own checks, and learners within its pipelines and searches. The exemptions are in
koco_stream/scikit_learn.py.
"""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import check_dataframe_column_names_consistency, check_estimator

import koco_stream
from koco_stream import Classifier, OjaSON
from koco_stream.learners import LEARNERS
from koco_stream.learners.base import unlearnt
from tests.helpers.linear_streams import stream
from tests.helpers.refusal import refusal
from tests.helpers.wire import as_on_a_worker

# Neither holds its predictions within [−clip, clip], and a first step of 1 on the squared loss goes
# twice as far as it should.
SMALLER_STEPS = {"FOGD": {"step_size": 0.3}, "NOGD": {"step_size": 0.3}}
# What a classifier by Constant cannot do: it does not look at the rows.
OF_CONSTANT = {
    "check_classifiers_train": "the check requires an accuracy that needs the rows",
    "check_classifiers_classes": "labels of equal number give 0, which is the second class here",
}
# The checks of the others take a minute.
QUICK = ("Constant", "OGD", "KORS")


X, Y = stream(3, n=120, d=4, density=1.0)


# Learners do without scikit-learn, so that they cannot inherit from its classes; what these give
# they have themselves. Labels beyond clip and long rows are what its checks bring, and learners say
# so.
@pytest.mark.filterwarnings(
    "ignore:Estimator .* does not inherit from `sklearn.base.BaseEstimator`"
)
@pytest.mark.filterwarnings("ignore:a label .* is beyond clip")
@pytest.mark.filterwarnings("ignore:the first rows have a mean square norm")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.long)
        for name in sorted(LEARNERS)
    ],
)
def test_scikit_learn_s_checks__pass(name):
    learner = LEARNERS[name](**SMALLER_STEPS.get(name, {}))
    for estimator in [learner] if name == "KORS" else [learner, Classifier(learner)]:
        exempt = OF_CONSTANT if name == "Constant" and estimator is not learner else {}
        results = check_estimator(
            estimator, on_fail="raise", on_skip=None, expected_failed_checks=exempt
        )
        # The array API is only looked at where the environment asks for it.
        failed = {r["check_name"] for r in results if r["status"] != "passed"}
        assert failed - {"check_array_api_input"} == set(exempt)
        check_dataframe_column_names_consistency(name, estimator)


def test_diverged_or_changed__is_refused_with_the_reason_also_where_it_was_sent():
    diverged = koco_stream.OGD(1e200, clip=1e300)
    refusal(
        "the prediction for row",
        diverged.partial_fit,
        np.full((9, 2), 1e10),
        np.ones(9),
        by=FloatingPointError,
    )
    changed = OjaSON(3).partial_fit(X, Y).set_params(alpha=7.0)
    for model, row, reason in (
        (diverged, np.ones((1, 2)), "diverged"),
        (changed, X, "alpha changed"),
    ):
        for each in (model, as_on_a_worker(model)):
            refusal(reason, each.predict, row)
    assert not as_on_a_worker(OjaSON(3)).__sklearn_is_fitted__()


def test_feature_names__are_kept_in_a_file(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    OjaSON(3).partial_fit(frame, Y).save(tmp_path / "m.koco")
    model = koco_stream.load(tmp_path / "m.koco")
    assert model.feature_names_in_.tolist() == list("abcd")
    refusal("same order", model.partial_fit, frame[list("dcba")], Y)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.partial_fit(X, Y)


def test_classifier__is_the_learner_on_signs():
    labels = np.where(Y >= 0, 7, 3)
    learner = OjaSON(3, alpha=0.5, loss="logistic")
    scores = OjaSON(3, alpha=0.5, loss="logistic").progressive(X, np.where(Y >= 0, 1.0, -1.0))
    model = Classifier(learner)
    predicted = np.concatenate(
        [model.progressive(X[:1], labels[:1], classes=[3, 7]), model.progressive(X[1:], labels[1:])]
    )
    assert predicted.tolist() == np.where(scores >= 0, 7, 3).tolist()
    assert (predicted[0], scores[0]) == (7, 0.0)  # nothing was known yet
    assert (model.classes_.tolist(), model.rounds_, model.n_features_in_) == ([3, 7], len(X), 4)
    assert model.decision_function(X).tobytes() == model.learner_.predict(X).tobytes()
    assert not learner.__sklearn_is_fitted__()


def test_classifier__refuses_other_classes_and_learns_nothing_from_them():
    model = Classifier(OjaSON(3)).partial_fit(X, Y > 0)
    before = model.decision_function(X).tobytes()
    for label in (2, "a", None):
        refusal(rf"y\[0\] is {label!r}, ", model.partial_fit, X, np.full(len(X), label))
    for classes in ([False, True, 2], [0, 5], [0], ["False", "True"]):
        refusal(
            r"classes is .*the first call had \[False, True\];",
            model.partial_fit,
            X,
            Y > 0,
            classes,
        )
    refusal("target y is None", model.partial_fit, X, None)
    assert model.decision_function(X).tobytes() == before
    model.partial_fit(X[:0], [], classes=[True, False])  # the same ones


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", None, "b"], "[1] is None, which is no label; remove the row"),
        (["a", float("nan"), "b"], "[1] is nan"),
        (pd.Series(["b", "a", pd.NA]), "[2] is "),
        (pd.Series([0, 1, None], dtype="Int64"), "[2] is "),
        (np.array([None, "a", "b"], object), "[0] is None, which is no label"),
        (np.array(["2020-01-01", "NaT", "2021-01-01"], "M8[D]"), "[1] is np.datetime64('NaT'"),
        ([0.0, 1.0, float("inf")], "[2] is inf"),
        (["a", "b", 1], "[2] is 1 and "),
        ((1, "2", 2), "[1] is '2' and "),
        (np.array(["a", 1, "b"], object), "[1] is 1 and "),
        (np.array(["a", b"b", "c"], object), "[1] is b'b' and "),
    ],
)
def test_classifier__refuses_labels_that_are_missing_or_of_two_kinds_by_their_row(labels, message):
    model = Classifier(OjaSON(3))
    refusal(re.escape(f"y{message}"), model.fit, X[:3], labels)
    refusal(re.escape(f"y{message}"), model.partial_fit, X[:3], labels, ["a", "b"])
    refusal(re.escape(f"classes{message}"), model.partial_fit, X[:3], ["a", "b", "a"], labels)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize(
    ("learner", "labels", "message"),
    [
        (OjaSON(3), [1, 1], "only one class, 1; give all"),
        (koco_stream.KORS(), [0, 1], "cannot classify"),
        ("OjaSON", [0, 1], "must be a learner"),
    ],
    ids=["one class", "a sampler", "a name"],
)
def test_classifier__refuses_what_it_cannot_learn(learner, labels, message):
    refusal(message, Classifier(learner).fit, np.eye(2), labels)


@pytest.mark.parametrize(
    "learner",
    [OjaSON(3, fit_intercept=True), koco_stream.KONS(loss="squared_hinge")],
    ids=lambda learner: type(learner).__name__,
)
def test_classifier_of_more_classes__is_a_learner_for_each(learner):
    """Also where they share kernel values, whatever the blocks, and after it was sent."""
    classes = np.array(["b", "c", "d", "k"])
    labels = classes[np.digitize(Y, np.quantile(Y, [0.4, 0.7, 0.9]))]
    cuts, alone = (1, 40, 41, 90), [unlearnt(learner) for _ in classes]
    scores = np.array(
        [
            one.progressive(X, np.where(labels == c, 1.0, -1.0))
            for one, c in zip(alone, classes, strict=True)
        ]
    )
    model, found = Classifier(learner), []
    for lo, hi in zip([0, *cuts], [*cuts, len(X)], strict=True):
        found += model.progressive(X[lo:hi], labels[lo:hi], classes=classes).tolist()
        model = as_on_a_worker(model)
    assert found == classes[scores.argmax(0)].tolist()
    assert found[0] == "b"  # nothing was known yet: the first of equal ones
    expected = np.array([one.predict(X) for one in alone]).T
    assert model.decision_function(X).tobytes() == expected.copy().tobytes()
    assert model.predict(X).tolist() == classes[expected.argmax(1)].tolist()
    assert (model.rounds_, model.n_features_in_, len(model.learners_)) == (len(X), 4, 4)
    again = Classifier(learner).fit(X, labels)
    assert again.decision_function(X).tobytes() == expected.copy().tobytes()


@pytest.mark.parametrize(
    "classes",
    [np.array([False, True]), np.array([2.0, 5.0, 7.0]), np.array(["a", "b", "c"], object)],
)
def test_saved_classifier__goes_on_with_the_same_bits(classes, tmp_path):
    learner = OjaSON(3)
    labels = classes[np.arange(len(X)) % classes.size]
    model = Classifier(learner).partial_fit(X[:60], labels[:60], classes)
    model.save(tmp_path / "c.koco")
    loaded = Classifier.load(tmp_path / "c.koco")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.get_params()["learner"].get_params() == learner.get_params()
    for one in (model, loaded):
        one.partial_fit(X[60:], labels[60:])
    assert model.decision_function(X).tobytes() == loaded.decision_function(X).tobytes()
    assert (model.predict(X) == loaded.predict(X)).all()
    Classifier(learner).save(tmp_path / "new.koco")
    assert not Classifier.load(tmp_path / "new.koco").__sklearn_is_fitted__()


def test_classifier_s_file__is_of_its_own_kind(tmp_path):
    OjaSON(3).save(tmp_path / "learner.koco")
    refusal(
        r"holds OjaSON, not a classifier; use koco_stream\.load",
        Classifier.load,
        tmp_path / "learner.koco",
    )
    Classifier(OjaSON(3)).save(tmp_path / "c.koco")
    refusal(
        r"holds a classifier; use koco_stream\.Classifier", koco_stream.load, tmp_path / "c.koco"
    )
    dates = np.array(["2020-01-01", "2021-01-01"], "M8[D]")
    model = Classifier(OjaSON(3)).fit(X, dates[np.arange(len(X)) % 2])
    refusal("classes of type date cannot be saved", model.save, tmp_path / "d.koco")


@pytest.mark.parametrize("k", [2, 3])
def test_probabilities__are_those_of_the_log_odds(k):
    labels = np.arange(len(X)) % k
    model = Classifier(koco_stream.OGD(9.0, loss="logistic", clip=800.0)).fit(X, labels)
    found, scores = model.predict_proba(X), model.decision_function(X)
    assert found.shape == (len(X), k)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    with np.errstate(over="ignore"):
        p = 1.0 / (1.0 + np.exp(-scores))
    literal = np.stack([1 - p, p], axis=1) if k == 2 else p / p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, literal, atol=1e-15)
    assert (model.classes_[found.argmax(axis=1)] == model.predict(X)).all() or k == 2


def test_probabilities__are_of_the_logistic_loss_only():
    model = Classifier(OjaSON(3)).fit(X, Y > 0)
    assert not hasattr(model, "predict_proba")
    refusal(
        "no probabilities; only a learner with loss='logis",
        getattr,
        model,
        "predict_proba",
        by=AttributeError,
    )
    assert hasattr(Classifier(OjaSON(3, loss="logistic")), "predict_proba")


@pytest.mark.parametrize("model", [OjaSON(3), Classifier(OjaSON(3))], ids=repr)
def test_notebooks__show_scikit_learn_s_diagram_if_it_is_there(model, monkeypatch):
    for each in (model, type(model)(**model.get_params(deep=False)).fit(X, Y > 0)):
        assert all(words in each._repr_html_() for words in ("<style>", "OjaSON(sketch_size=3)"))
    monkeypatch.setitem(sys.modules, "sklearn.utils", None)
    assert model._repr_html_() is None
