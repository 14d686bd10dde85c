"""What a foreign learner says before it runs: names, arguments, identity, loss, memory."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from koco_stream import WrongInput
from koco_stream.learners import StreamSize
from koco_stream.learners.foreign.learner import foreign_learner
from koco_stream.learners.record import recorded
from koco_stream.learners.saved import state_arrays
from koco_stream.losses import LOSSES
from tests.helpers.foreign import CLASSES, scores, started
from tests.helpers.project import environment

RIVER, SGD = "river.linear_model:LogisticRegression", "sklearn.linear_model:SGDClassifier"


def public(name, **given):
    learner = foreign_learner(name)
    return learner, learner.complete(given)


def needs(name):
    top = "vowpalwabbit" if name == "vw" else name.partition(".")[0]
    pytest.importorskip(top, reason=f"needs {top}, which is not installed")


def test_class__is_one_for_a_name():
    assert foreign_learner(RIVER) is foreign_learner(RIVER)
    named = foreign_learner("logistic", RIVER)
    assert (named.__name__, named.target) == ("logistic", RIVER)
    assert (named.numbers, named.grows, named.numbers_version) == ("foreign", False, 1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("river", "'river' must have the form package.module:Class"),
        ("river.linear_model", "'river.linear_model' must have the form"),
        (":Class", "':Class' must have the form"),
        ("river.linear_modl:Perceptron", "river has no module 'linear_modl'; did you mean 'linear"),
        ("river.linear_model:Percepton", "has no class 'Percepton'; did you mean 'Perceptron'?"),
        (f"{CLASSES}:not_a_class", "is not a class, but of type int"),
        (f"{CLASSES}:Transforms", "neither learn_one(x, y) and predict_one(x)"),
        ("river.cluster:KMeans", "neither learn_one(x, y) and predict_one(x)"),
        ("sklearn.preprocessing:StandardScaler", "nor partial_fit and predict"),
        ("no_such_package.models:Model", "no_such_package is not installed"),
    ],
)
def test_target__that_is_no_learner_is_refused(name, message):
    if not name.startswith((":", CLASSES, "no_such")):
        needs(name)
    with pytest.raises(WrongInput, match=re.escape(message)):
        foreign_learner(name).complete({})


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
    words = [sys.executable, "-c", MISSING, RIVER, SGD, "vw"]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "river is not installed: pip install 'koco-stream[river]'",
        "sklearn is not installed: pip install 'koco-stream[documents]'",
        "vowpalwabbit is not installed: pip install 'koco-stream[vw]'",
    ], done.stderr


def test_module__that_cannot_be_imported_is_told(tmp_path, monkeypatch):
    (tmp_path / "broken_learner.py").write_text("1 / 0\n")
    (tmp_path / "needy_learner.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(WrongInput, match="broken_learner cannot be imported: ZeroDivisionError"):
        foreign_learner("broken_learner:Model").complete({})
    with pytest.raises(WrongInput, match="no_such_package is not installed, and needy_learner"):
        foreign_learner("needy_learner:Model").complete({})


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (SGD, {"alfa": 1.0}, "has no argument 'alfa'; did you mean 'alpha'?"),
        (f"{CLASSES}:CannotBeMade", {}, "missing a required argument: 'size'"),
        (SGD, {"alpha": float("nan")}, "alpha must be a finite number, a text, true"),
        (SGD, {"alpha": [1.0, float("inf")]}, "alpha must be a finite number"),
        (SGD, {"alpha": {(1, 2): 2}}, "alpha must be a finite number"),
        (SGD, {"alpha": object()}, "alpha must be a finite number"),
    ],
)
def test_argument__that_is_wrong_is_refused(name, given, message):
    needs(name)
    with pytest.raises(WrongInput, match=re.escape(message)):
        public(name, **given)


def test_arguments__of_any_kind_reach_the_constructor():
    given = {"table": {"list": [1, 2.5]}, "none": None, "text": "x", "true": True}
    assert scores(f"{CLASSES}:TakesAnything", given, np.eye(2), np.ones(2)).tolist() == [2.5, 2.5]
    learner, q = public(f"{CLASSES}:TakesAnything", whole=np.int64(3), real=np.float32(0.5))
    assert json.dumps(learner.identifying(q)) == '{"whole": 3, "real": 0.5}'


def test_identity__is_what_was_given():
    needs(SGD)
    learner, q = public(SGD, alpha=0.1, l1_ratio=0.15)
    assert q == learner.identifying(q) == {"alpha": 0.1, "l1_ratio": 0.15}
    assert learner.identifying(public(SGD)[1]) == {}
    assert learner.refilled({"alpha": 0.1}) == {"alpha": 0.1}
    assert not learner.adds_intercept(q)


@pytest.mark.parametrize(
    ("name", "given", "stochastic"),
    [
        (SGD, {}, True),
        (SGD, {"random_state": 3}, False),
        (RIVER, {}, False),
        ("river.forest:ARFClassifier", {}, True),
        ("river.forest:ARFClassifier", {"seed": 3}, False),
        ("sklearn.naive_bayes:BernoulliNB", {}, False),
        (f"{CLASSES}:TakesAnything", {"seed": 3}, False),
    ],
)
def test_stochastic__if_the_constructor_has_a_seed_that_is_not_given(name, given, stochastic):
    needs(name)
    learner, q = public(name, **given)
    assert learner.stochastic(q) is stochastic


@pytest.mark.parametrize(
    ("name", "given", "loss", "classifies"),
    [
        (RIVER, {}, "logistic", True),
        ("river.linear_model:LinearRegression", {}, "squared", False),
        (f"{CLASSES}:Mean", {}, "squared", False),
        (SGD, {}, "hinge", True),
        (SGD, {"loss": "log_loss"}, "logistic", True),
        (SGD, {"loss": "squared_hinge"}, "squared_hinge", True),
        (SGD, {"loss": "perceptron"}, "squared", True),
        ("sklearn.linear_model:SGDRegressor", {}, "squared", False),
        ("sklearn.linear_model:SGDRegressor", {"loss": "huber"}, "squared", False),
        ("sklearn.naive_bayes:BernoulliNB", {}, "logistic", True),
        ("sklearn.neural_network:MLPRegressor", {}, "squared", False),
    ],
)
def test_loss__is_the_learner_s_own_where_it_is_known(name, given, loss, classifies):
    needs(name)
    learner, q = public(name, **given)
    assert learner.measured_loss(q) == loss in LOSSES
    assert learner.classifies(q) is classifies


@pytest.mark.parametrize("name", [RIVER, SGD, "vw"])
def test_memory__is_of_a_process(name):
    needs(name)
    learner, q = public(name)
    assert 8 * learner.floats(q, StreamSize(10**6, 9, 9)) > 50e6


def test_state__has_no_arrays():
    _, _, state = started(f"{CLASSES}:Mean", {}, 3)
    assert state_arrays(state) == recorded(state) == {}
    assert foreign_learner(f"{CLASSES}:Mean").joined(state) is None
