"""A round without a gradient leaves sketch and weights as they are, to the bit; it is a round."""

import numpy as np
import pytest

import koco_stream
from koco_stream.learners.saved import state_arrays

LEARNERS = {
    "OjaSON": {"sketch_size": 3, "alpha": 0.5},
    "OjaSON, random": {"sketch_size": 3, "alpha": 0.5, "sketch_start": "random"},
    "RPSON": {"sketch_size": 3, "alpha": 0.5},
    "FDSON": {"sketch_size": 3, "alpha": 0.5},
    "RFDSON": {"sketch_size": 3},
    "SAdaGrad": {"sketch_size": 3},
    "AdaFD": {"sketch_size": 3},
    "FTRLProximal": {"step_size": 0.5},
    "AdaGrad": {"step_size": 0.5},
    "OGD": {"step_size": 0.1},
}
TABLES = ("zw", "sw", "table", "zn", "wG", "w")  # a learner's is under one of these names
each = pytest.mark.parametrize("name", LEARNERS)


def learnt(name):
    """A learner with the squared hinge loss that has learnt, and rows."""
    draw = np.random.default_rng(3)
    X = draw.standard_normal((160, 6)) * (draw.random((160, 6)) < 0.7)
    X[:, 0] = 1.0
    y = np.sign(X @ draw.standard_normal(6))
    learner = getattr(koco_stream, name.split(",")[0])
    model = learner(**LEARNERS[name], loss="squared_hinge", clip=20.0, seed=4)
    return model.partial_fit(X[:120], y[:120]), X[120:]


def table_of(model):
    arrays = state_arrays(model._state)
    return next(arrays[one] for one in TABLES if one in arrays)


@each
def test_no_gradient__leaves_the_table_as_it_is(name):
    model, X = learnt(name)
    X = X[np.abs(model.predict(X)) > 0.1]
    for _ in range(3):  # predictions are held within 20
        X *= (3.0 / np.abs(model.predict(X)))[:, None]
    y_hat = model.predict(X)
    model.partial_fit(X, np.sign(y_hat))  # brings the features' numbers up to date
    before, coef = table_of(model).copy(), model.coef_.copy()
    for x, value in zip(X, y_hat, strict=True):
        (found,) = model.progressive(x[None], [np.sign(value)])
        assert 2.9 < abs(found) < 3.1  # so the loss and its slope are 0
        assert found == value
    assert len(X) > 20
    assert table_of(model).tobytes() == before.tobytes()
    assert model.coef_.tobytes() == coef.tobytes()
    assert model.rounds_ == 120 + 2 * len(X)


@each
def test_a_gradient__changes_the_table(name):
    model, X = learnt(name)
    before = table_of(model).copy()
    model.partial_fit(X[:1], -np.sign(model.predict(X[:1])))
    assert table_of(model).tobytes() != before.tobytes()
