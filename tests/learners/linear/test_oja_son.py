"""Oja-SON: the limits that the paper gives, and a sketch that stays orthonormal on hard streams."""

import numpy as np
import pytest

from koco_stream import OGD, OjaSON
from tests.helpers.linear_streams import stream


def test_intercept__equals_a_column_of_ones():
    X, y = stream(7)
    with_ones = np.hstack([X, np.ones((len(X), 1))])
    a = OjaSON(3, 1.0, fit_intercept=True).progressive(X, y)
    b = OjaSON(3, 1.0).progressive(with_ones, y)
    assert a.tobytes() == b.tobytes()


def test_no_sketch__is_projected_gradient_descent():
    X, y = stream(11)
    a = OjaSON(0, 4.0, clip=0.5).progressive(X, y * 0.5)
    b = OGD(0.25, clip=0.5).progressive(X, y * 0.5)
    np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_badly_scaled_features__never_give_nan(scale):
    X, y = stream(13, density=1.0)
    X = X * np.geomspace(1.0 / scale, scale, X.shape[1])
    model = OjaSON(5, 1.0, sketch_rate=16.0)
    assert np.isfinite(model.progressive(X, y)).all()
    V = model.sketch_
    np.testing.assert_allclose(V @ V.T, np.eye(5), atol=1e-6)


def test_start_from_gradients__keeps_the_sketch_orthonormal_on_rows_that_are_nearly_alike():
    # Each row that starts multiplies what V lacks of orthonormality: without a fold the sketch of
    # such a stream was lost in ten rounds.
    draw = np.random.default_rng(0)
    X = draw.random(13) + 0.02 * np.geomspace(1, 0.1, 13) * draw.standard_normal((3000, 13))
    model = OjaSON(10, 0.0625)
    assert np.isfinite(model.progressive(X, draw.random(3000))).all()
    np.testing.assert_allclose(model.sketch_ @ model.sketch_.T, np.eye(10), atol=1e-9)
