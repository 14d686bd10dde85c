"""What a foreign learner says before it runs: names, arguments, identity, loss, memory."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from koco_stream.learners import StreamSize
from koco_stream.learners.foreign.learner import foreign_learner
from koco_stream.losses import LOSSES
from tests.helpers.foreign import CLASSES, scores
from tests.helpers.project import environment
from tests.helpers.refusal import refusal

RIVER = "river.linear_model:LogisticRegression"
SGD, REGRESSOR = "sklearn.linear_model:SGDClassifier", "sklearn.linear_model:SGDRegressor"


def public(name, **given):
    """A learner and its complete parameters; the test is skipped where its library is missing."""
    top = "vowpalwabbit" if name == "vw" else name.partition(".")[0]
    if top in ("river", "sklearn", "vowpalwabbit"):
        pytest.importorskip(top, reason=f"needs {top}, which is not installed")
    learner = foreign_learner(name)
    return learner, learner.complete(given)


def test_class__is_one_for_a_name():
    assert foreign_learner(RIVER) is foreign_learner(RIVER)
    named = foreign_learner("logistic", RIVER)
    assert (named.__name__, named.target) == ("logistic", RIVER)
    assert (named.numbers, named.grows, named.numbers_version) == ("foreign", False, 1)
    assert named.joined(None) is None


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("river", {}, "'river' must have the form package.module:Class"),
        ("river.linear_model", {}, "'river.linear_model' must have the form"),
        (":Class", {}, "':Class' must have the form"),
        ("river.linear_modl:A", {}, "river has no module 'linear_modl'; did you mean 'linear"),
        ("river.linear_model:Percepton", {}, "has no class 'Percepton'; did you mean 'Perceptron'"),
        (f"{CLASSES}:not_a_class", {}, "is not a class, but of type int"),
        (f"{CLASSES}:Transforms", {}, "neither learn_one(x, y) and predict_one(x)"),
        ("river.cluster:KMeans", {}, "neither learn_one(x, y) and predict_one(x)"),
        ("sklearn.preprocessing:StandardScaler", {}, "nor partial_fit and predict"),
        ("no_such_package.models:Model", {}, "no_such_package is not installed"),
        (SGD, {"alfa": 1.0}, "has no argument 'alfa'; did you mean 'alpha'?"),
        (f"{CLASSES}:CannotBeMade", {}, "missing a required argument: 'size'"),
        (SGD, {"alpha": float("nan")}, "alpha must be a finite number, a text, true"),
        (SGD, {"alpha": [1.0, float("inf")]}, "alpha must be a finite number"),
        (SGD, {"alpha": {(1, 2): 2}}, "alpha must be a finite number"),
        (SGD, {"alpha": object()}, "alpha must be a finite number"),
        ("vw", {"option": "--adaptive"}, "vw has no argument 'option'; did you mean 'options'?"),
        ("vw", {"options": 3}, "options must be a text"),
        ("vw", {"options": ["--adaptive"]}, "options must be a text"),
        ("vw", {"options": "-d rows.vw"}, "leave -d out of options: the rows are the dataset's"),
        ("vw", {"options": "--adaptive --passes=3"}, "leave --passes out"),
        ("vw", {"options": "-fmodel"}, "leave -f out of options: a run reads and writes no files"),
        ("vw", {"options": "--hash all"}, "features are numbers, not hashed"),
        ("vw", {"options": "--loss_function logistic --link logistic"}, "leave --link out"),
    ],
)
def test_what_cannot_be_a_learner__is_refused(name, given, message):
    refusal(re.escape(message), public, name, **given)


MISSING = """
import sys
sys.modules.update(river=None, sklearn=None, vowpalwabbit=None)
from koco_stream import WrongInput
from koco_stream.learners.foreign.learner import foreign_learner
for name in sys.argv[1:]:
    try:
        foreign_learner(name).complete({})
    except WrongInput as error:
        print(error)
"""


def test_library__that_is_not_installed_is_named_with_its_extra():
    done = subprocess.run(
        [sys.executable, "-c", MISSING, RIVER, SGD, "vw"],
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == [
        "river is not installed: pip install 'koco-stream[river]'",
        "sklearn is not installed: pip install 'koco-stream[documents]'",
        "vowpalwabbit is not installed: pip install 'koco-stream[vw]'",
    ], done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0\n", "this_learner cannot be imported: ZeroDivisionError"),
        ("import no_such_package\n", "no_such_package is not installed, and this_learner"),
    ],
)
def test_module__that_cannot_be_imported_is_told(text, message, tmp_path, monkeypatch):
    (tmp_path / "this_learner.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    refusal(message, public, "this_learner:Model")


def test_arguments__of_any_kind_reach_the_constructor():
    given = {"table": {"list": [1, 2.5]}, "none": None, "text": "x", "true": True}
    assert scores(f"{CLASSES}:TakesAnything", given, np.eye(2), np.ones(2)).tolist() == [2.5, 2.5]
    learner, q = public(f"{CLASSES}:TakesAnything", whole=np.int64(3), real=np.float32(0.5))
    assert json.dumps(learner.identifying(q)) == '{"whole": 3, "real": 0.5}'


def test_identity__is_what_was_given():
    learner, q = public(SGD, alpha=0.1, l1_ratio=0.15, fit_intercept=True)
    assert q == learner.identifying(q) == {"alpha": 0.1, "l1_ratio": 0.15, "fit_intercept": True}
    assert learner.identifying(public(SGD)[1]) == {}
    assert learner.refilled({"curvature": None}) == {"curvature": None}  # its own
    assert not learner.adds_intercept(q)


@pytest.mark.parametrize(
    ("name", "given", "loss", "classifies", "stochastic"),
    [
        (RIVER, {}, "logistic", True, False),
        ("river.linear_model:LinearRegression", {}, "squared", False, False),
        ("river.forest:ARFClassifier", {}, "logistic", True, True),
        ("river.forest:ARFClassifier", {"seed": 3}, "logistic", True, False),
        (f"{CLASSES}:Mean", {}, "squared", False, False),
        (f"{CLASSES}:TakesAnything", {"seed": 3}, "squared", False, False),
        (SGD, {}, "hinge", True, True),
        (SGD, {"random_state": 3}, "hinge", True, False),
        (SGD, {"loss": "log_loss"}, "logistic", True, True),
        (SGD, {"loss": "squared_hinge"}, "squared_hinge", True, True),
        (SGD, {"loss": "perceptron"}, "squared", True, True),
        (REGRESSOR, {}, "squared", False, True),
        (REGRESSOR, {"loss": "huber"}, "squared", False, True),
        ("sklearn.naive_bayes:BernoulliNB", {}, "logistic", True, False),
        ("sklearn.neural_network:MLPRegressor", {}, "squared", False, True),
    ],
)
def test_loss_and_draws__are_the_learner_s_own_where_they_are_known(
    name, given, loss, classifies, stochastic
):
    learner, q = public(name, **given)
    assert learner.measured_loss(q) == loss in LOSSES
    assert (learner.classifies(q), learner.stochastic(q)) == (classifies, stochastic)
    assert 8 * learner.floats(q, StreamSize(10**6, 9, 9)) > 50e6  # of a process
