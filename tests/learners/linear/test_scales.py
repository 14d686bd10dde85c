"""Rows of any scale: predictions are as good as those of the papers' formulas in double, or their
rounds are counted as doubtful.

The literal texts are run in long double, which is what a prediction should be, and in double.
"""

import numpy as np
import pytest

from koco_stream.learners import LEARNERS
from koco_stream.learners.record import doubtful_rounds
from tests.helpers.scaled_rows import KINDS, assert_right_or_said, rows
from tests.oracles.linear_learners import Reference, options_of

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18,
    reason="this machine's long double has no more digits than a double",
)
CASES = {
    **{name: {} for name in ("AdaGrad", "NAG", "ONS", "FDSON", "RPSON", "OjaSON")},
    **{name: {} for name in ("RFDSON", "SAdaGrad", "AdaFD")},
    "OjaSON from random rows": {"sketch_start": "random"},
}


@pytest.mark.filterwarnings("ignore:(double precision|the first rows)")
@pytest.mark.parametrize("case", CASES)
def test_predictions__are_as_good_as_the_formulas_in_double_or_counted_as_doubtful(case):
    name = case.split()[0]
    size = {"sketch_size": 2 if name == "FDSON" else 3}

    def learnt(number, X, y, alpha):
        drawn = {"alpha": alpha, "delta": alpha, "step_size": 0.5, **size}  # 1/α is the first step
        reference = Reference(name, options_of(name, drawn, CASES[case]), X, y)
        model = LEARNERS[name](**reference.options)
        # One double reference may be right by luck: the other has the features in reverse order.
        doubles = [
            lambda order=order: reference.run(order=order).predictions
            for order in (slice(None), slice(None, None, -1))
        ]
        exact = lambda: reference.run(np.longdouble).predictions  # noqa: E731
        return model, model.progressive(X, y), exact, doubles, 2

    assert_right_or_said(learnt)


@pytest.mark.filterwarnings("ignore:(double precision|the first rows)")
@pytest.mark.parametrize("name", ["FDSON", "RPSON", "OjaSON", "KONS"])
@pytest.mark.parametrize(("loss", "doubtful"), [("hinge", True), ("squared_hinge", False)])
def test_a_slope__that_rounding_makes_is_doubtful_where_it_is_not_small(name, loss, doubtful):
    draw = np.random.default_rng(0)
    X = draw.standard_normal((4, 4))[draw.integers(0, 4, 200)]  # projected to the margin 1 before
    given = {"alpha": 1e-5, "step_size": 1e6, "curvature": 0.3, "sketch_size": 2, "loss": loss}
    given["kernel"] = "polynomial"
    model = LEARNERS[name](**options_of(name, given))
    model.progressive(X, draw.choice([-1.0, 1.0], 200))
    assert (doubtful_rounds([model._state]) > 0) == doubtful


# of rows nearly on a line rounding decides which are outside the span of the others
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("collinear", "offset")])
def test_ons_without_a_ridge__has_its_digits_in_any_units(kind):
    """No map of the features changes its predictions."""
    X, y = rows(kind)
    units = 10.0 ** np.random.default_rng(0).uniform(-8, 8, X.shape[1])
    reference = Reference("ONS", options_of("ONS", {"alpha": 0.0}), X, y)
    expected = reference.run(np.longdouble).predictions.astype(float)
    found = LEARNERS["ONS"](**reference.options).progressive(X * units, y)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
