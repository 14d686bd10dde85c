"""Rows of any scale: predictions are as good as those of the papers' formulas in double, or their
rounds are counted as doubtful.

The literal texts are run in long double, which is what a prediction should be, and in double.
"""

import numpy as np
import pytest

from koco_stream.learners import LEARNERS
from tests.helpers.scaled_rows import assert_right_or_said
from tests.oracles.linear_learners import Reference, options_of

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18,
    reason="this machine's long double has no more digits than a double",
)
CASES = {
    **{name: {} for name in ("AdaGrad", "NAG", "ONS", "FDSON", "RPSON", "OjaSON")},
    **{name: {} for name in ("RFDSON", "SAdaGrad", "AdaFD")},
    "OjaSON from random rows": {"sketch_start": "random"},
    "ONS without a ridge": {"alpha": 0.0},
}


@pytest.mark.filterwarnings("ignore:double precision")
@pytest.mark.parametrize("case", CASES)
def test_predictions__are_as_good_as_the_formulas_in_double_or_counted_as_doubtful(case):
    name = case.split()[0]
    size = {"sketch_size": 2 if name == "FDSON" else 3}

    def learnt(number, X, y, alpha):
        drawn = {"alpha": alpha, "delta": alpha, "step_size": 0.5, **size}  # 1/α is the first step
        options = options_of(name, drawn, CASES[case])
        # without a ridge no map of the features changes predictions
        rows = X if options.get("alpha") != 0 else X * 2.0 ** -np.frexp(np.abs(X).max(0))[1]
        reference, model = Reference(name, options, rows, y), LEARNERS[name](**options)
        # One double reference may be right by luck: the other has the features in reverse order.
        doubles = [
            lambda order=order: reference.run(order=order).predictions
            for order in (slice(None), slice(None, None, -1))
        ]
        exact = lambda: reference.run(np.longdouble).predictions  # noqa: E731
        return model, model.progressive(X, y), exact, doubles, 2

    assert_right_or_said(learnt)
