"""What a learner's constructor, its first call and its help say to one who makes a mistake or has a
question.
"""

import inspect
import math
import re
from itertools import product

import numpy as np
import pytest

from koco_stream import CONKONS, OGD, Classifier, OjaSON, WrongInput
from koco_stream.learners import LEARNERS
from tests.helpers.examples import EXAMPLES

EVERY = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


def test_help__has_every_parameter_and_its_default():
    for learner in LEARNERS.values():
        help_text = inspect.getdoc(learner)
        arguments = inspect.signature(learner).parameters
        assert [name for name in arguments if not re.search(rf"^{name} : ", help_text, re.M)] == []
        annotations = [one.annotation for one in arguments.values() if one.default is None]
        assert all("None" in str(annotation) for annotation in annotations)


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: CONKONS(bandwith=1), "CONKONS has no parameter 'bandwith'; did you mean 'bandwi"),
        (lambda: CONKONS(kernel="gausian").fit([[1.0]], [1.0]), "did you mean 'gaussian'"),
        (lambda: CONKONS(bandwidth=-1).fit([[1.0]], [1.0]), "CONKONS: bandwidth must be greater"),
        (lambda: Classifier(lerner=OGD()), "Classifier has no parameter 'lerner'"),
        (lambda: Classifier(OjaSON(3)).set_params(learner_alpha=1.0), "mean 'learner__alpha'"),
        (lambda: OjaSON().set_params(alfa=1.0), "did you mean 'alpha'"),
        (lambda: OjaSON(loss="hinge").fit([[1.0]], [1.0]), "no curvature"),
        (lambda: OjaSON(2, seed=None).fit([[1.0]], [1.0]), "seed must be"),
        (lambda: OjaSON(2, seed=1.7).fit([[1.0]], [1.0]), "seed must be"),
        (lambda: OjaSON(2, seed=-1).fit([[1.0]], [1.0]), "seed must be"),
        (lambda: OjaSON(2, seed=2**63).fit([[1.0]], [1.0]), "seed must be"),
    ],
)
def test_mistake__is_told_with_its_remedy(mistake, said):
    with pytest.raises(WrongInput, match=said) as refusal:
        mistake()
    assert isinstance(refusal.value, TypeError) == ("has no parameter" in said)


def test_class_of_a_user_with_further_arguments__takes_them():
    class Mine(OjaSON):
        def __init__(self, alpha=1.0, **others):
            super().__init__(alpha=alpha, **others)

    assert Mine(sketch_size=3).sketch_size == 3
    with pytest.raises(WrongInput, match="Mine has no parameter 'sketch_sise'"):
        Mine(sketch_sise=3)


@EVERY
@pytest.mark.filterwarnings("ignore:(a label|double|the first rows)", "error::RuntimeWarning")
def test_extreme_parameters__are_refused_diverge_or_give_numbers(learner):
    X = np.random.default_rng(0).standard_normal((5, 3))
    for name, value in product(
        (q.name for q in learner.parameters),
        [0, -1, 1e-300, 5e-324, 1e300, math.inf, math.nan, None, "x", True, 2**70, [], b"x", 1j],
    ):
        try:
            model = learner(**{**EXAMPLES[learner.__name__], name: value})
            predictions = model.progressive(X, np.sign(X[:, 0]))
            assert np.isfinite(predictions).all(), (name, value)
        except (WrongInput, FloatingPointError):
            pass
