"""A round without a gradient leaves sketch and weights as they are, to the bit; it is a round."""

import numpy as np
import pytest

import koco_stream
from tests.helpers.examples import public

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


@pytest.mark.parametrize("name", LEARNERS)
def test_no_gradient__leaves_the_table_as_it_is_and_a_gradient_does_not(name):
    """With the squared hinge loss, on predictions of 3, which are held within 20."""
    draw = np.random.default_rng(3)
    X = draw.standard_normal((160, 6)) * (draw.random((160, 6)) < 0.7)
    X[:, 0] = 1.0
    y = np.sign(X @ draw.standard_normal(6))
    learner = getattr(koco_stream, name.split(",")[0])
    model = learner(**LEARNERS[name], loss="squared_hinge", clip=20.0, seed=4)
    model.partial_fit(X[:120], y[:120])
    X = X[120:][np.abs(model.predict(X[120:])) > 0.1]
    for _ in range(3):
        X *= (3.0 / np.abs(model.predict(X)))[:, None]
    y_hat = model.predict(X)
    model.partial_fit(X, np.sign(y_hat))
    before = public(model)
    found = model.progressive(X, np.sign(y_hat))
    assert (np.abs(np.abs(found) - 3.0) < 0.1).all()  # so the loss and its slope are 0
    assert found.tolist() == y_hat.tolist()
    assert len(X) > 20
    assert public(model) == before
    assert model.rounds_ == 120 + 2 * len(X)
    model.partial_fit(X[:1], -np.sign(y_hat[:1]))
    assert public(model) != before
