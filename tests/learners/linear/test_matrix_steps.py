"""RFD-SON, S-AdaGrad and Ada-FD where they are known to coincide with something else, and what
their sketch is.
"""

import numpy as np
import pytest

from koco_stream import RFDSON
from koco_stream.learners import LEARNERS
from koco_stream.learners.linear import frequent_directions
from tests.oracles.linear_learners import Reference, assert_agrees, options_of


def test_many_features__are_not_looked_at_one_by_one():
    """With many features, what of a row lies outside the sketch is a difference of two square
    norms, unless that has too few digits. Repeated rows lie within, others nearly.
    """
    draw = np.random.default_rng(4)
    X, y = np.zeros((60, frequent_directions.FEW + 76)), draw.uniform(-1, 1, 60)
    X[:, ::40] = draw.standard_normal((60, 28)) * (draw.random((60, 28)) < 0.5)
    X[::5] = X[1]
    X[2::5] = X[1] * (1 + 1e-5 * draw.standard_normal(X.shape[1]))
    reference = Reference("RFDSON", options_of("RFDSON", {"alpha": 1.0, "sketch_size": 3}), X, y)
    model = RFDSON(**reference.options)
    assert assert_agrees(reference, model.progressive(X, y), model) >= 0.9 * len(X)


@pytest.mark.parametrize(("name", "share"), [("RFDSON", 0.5), ("SAdaGrad", 1.0), ("AdaFD", 0.0)])
def test_orthogonal_rows_of_one_size__leave_an_empty_sketch(name, share):
    """With as many equal eigenvalues as there are rows, a shrink takes all of them: all slopes of
    the hinge loss are −1, as long as no prediction has reached the margin.
    """
    b, drawn = 2, {"loss": "hinge", "curvature": 0.3, "sketch_size": 3, "step_size": 1e-3}
    options = options_of(name, drawn, {"projection": "prediction", "delta": 0.1, "alpha": 0.0})
    model = LEARNERS[name](**options).partial_fit(np.eye(10)[: 2 * b], np.ones(2 * b))
    assert model.eigenvalues_.size == 0
    assert model.sketch_.shape == (0, 10)
    assert model._state.diagnostics.shrinks == 2
    if share:
        assert model.alpha_ == pytest.approx(share * options.get("curvature", 1.0))
