"""Rows of any scale: predictions are as good as those of the papers' formulas in double, or their
rounds are counted as doubtful.

The literal texts are run in long double, which is what a prediction should be, and in double.
"""

import numpy as np
import pytest

from koco_stream.learners import LEARNERS
from tests.helpers.linear_streams import projections, start_of
from tests.helpers.scaled_rows import N, assert_right_or_said
from tests.oracles.losses import curvatures, slopes
from tests.oracles.matrix_steps import MatrixSteps
from tests.oracles.sketched_newton import (
    BufferedFrequentDirections,
    FullMatrix,
    Oja,
    RandomProjection,
    sketched_newton,
)

pytestmark = [
    pytest.mark.one_python,
    pytest.mark.skipif(
        np.finfo(np.longdouble).eps > 1e-18,
        reason="this machine's long double has no more digits than a double",
    ),
]
M = 3
ORDERS = slice(None), slice(None, None, -1)
SHARED = {"clip": 1.0, "slope": slopes["squared"]}


def literal(name, options, X, y, dtype):
    """The predictions (n,) of a learner's literal text."""
    shared, alpha = SHARED | {"dtype": dtype}, options.get("alpha", 0.0)
    if name in ("RFDSON", "SAdaGrad", "AdaFD"):
        own = {"size": M, "buffer": 2, "floor": options.get("delta", alpha)}
        if name == "RFDSON":
            own |= {"growth": 0.5, "curvature": curvatures["squared"](1.0), "projection": "weights"}
        else:
            own |= {"growth": float(name == "SAdaGrad"), "step_size": options["step_size"]}
        return np.array(MatrixSteps(name, **own, **shared).run(X, y).predictions)
    start = None
    if options.get("sketch_start") == "random":
        start = start_of(LEARNERS[name](**options), X.shape[1])
        start = start[np.any(start != 0, axis=1)]
    sketch = {
        "ONS": FullMatrix,
        "OjaSON": lambda: Oja(M, 1.0, start),
        "FDSON": lambda: BufferedFrequentDirections(M),
        "RPSON": lambda: RandomProjection(projections(M, 0, N)[: len(X)]),
    }[name]()
    curvature = curvatures["squared"](1.0)
    return sketched_newton(X, y, sketch, alpha=alpha, curvature=curvature, **shared)[0]


def options_of(name, alpha):
    """A learner's options: 1/α is the step where nothing is known."""
    sketched = {} if name == "ONS" else {"sketch_size": M}
    return sketched | {
        "SAdaGrad": {"step_size": 0.5, "alpha": alpha},
        "AdaFD": {"step_size": 0.5, "delta": alpha},
    }.get(name, {"alpha": alpha})


CASES = [
    *("ONS", "FDSON", "RPSON", "RFDSON", "SAdaGrad", "AdaFD", "OjaSON"),
    "OjaSON from random rows",
]


@pytest.mark.filterwarnings("ignore:double precision")
@pytest.mark.parametrize("case", CASES)
def test_predictions__are_as_good_as_the_formulas_in_double_or_counted_as_doubtful(case):
    name = case.split()[0]

    def learnt(number, X, y, alpha):
        options = options_of(name, alpha)
        if "random" in case:
            options["sketch_start"] = "random"
        model = LEARNERS[name](**options)
        # One double reference may be right by luck: the other has the features in reverse order.
        doubles = [
            lambda order=order: literal(name, options, X[:, order], y, float) for order in ORDERS
        ]
        exact = lambda: literal(name, options, X, y, np.longdouble)  # noqa: E731
        return model, model.progressive(X, y), exact, doubles, 2

    assert_right_or_said(learnt)
