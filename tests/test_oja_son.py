"""Oja-SON against a literal dense reference, and the limits the paper gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.linear import oja_son_dense, squared_slope

from koco_stream import OGD, OjaSON


def stream(seed, n=300, d=20, density=0.3, noise=0.1):
    """Rows of unit mean square with some empty ones, labels in [−1, 1]."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, d)) * (draw.random((n, d)) < density)
    X[draw.random(n) < 0.05] = 0.0
    X /= np.sqrt((X**2).sum(1).mean())
    y = np.clip(X @ draw.standard_normal(d) + noise * draw.standard_normal(n), -1, 1)
    return X, y


def start_of(model, d):
    model.partial_fit(np.zeros((0, d)), np.zeros(0))
    return model.sketch_


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    m=st.integers(1, 10),
    rate=st.sampled_from([1.0, 4.0, 16.0, 128.0]),
    clip=st.sampled_from([0.2, 1.0, 3.0]),
    alpha=st.sampled_from([2.0, 5.0, 20.0]),
    density=st.sampled_from([0.1, 0.4, 1.0]),
)
def test_progressive__equals_dense_qr_reference(seed, m, rate, clip, alpha, density):
    X, y = stream(seed, density=density)
    y = y * min(clip, 1.0)
    curvature = 1.0 / (8 * clip * clip)
    model = OjaSON(m, alpha, clip=clip, sketch_rate=rate, sketch_start="random", seed=seed)
    expected, V, eigenvalues, u = oja_son_dense(X, y, start_of(model, X.shape[1]), alpha=alpha, curvature=curvature, clip=clip, rate=rate)
    np.testing.assert_allclose(model.progressive(X, y), expected, atol=1e-9, rtol=0)
    np.testing.assert_allclose(model.sketch_, V, atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, eigenvalues, atol=1e-9 * max(1.0, eigenvalues.max()))
    np.testing.assert_allclose(model.coef_, u, atol=1e-8)


def test_clipping__is_active_in_part_of_the_rounds_of_the_reference_test():
    X, y = stream(3)
    clipped = np.abs(OjaSON(5, 2.0, clip=0.2).progressive(X, y * 0.2)) >= 0.2
    assert 0.02 < clipped.mean() < 0.95


def test_decreasing_schedule__equals_reference_with_hinge_loss():
    X, y = stream(5)
    y = np.sign(y + 1e-9)
    model = OjaSON(4, 1.0, loss="hinge", clip=2.0, sketch_start="random", curvature=0.5, curvature_schedule="decreasing")

    def hinge(y_hat, label):
        return -label if label * y_hat < 1 else 0.0

    start = start_of(model, X.shape[1])
    expected = oja_son_dense(X, y, start, alpha=1.0, curvature=0.5, clip=2.0, rate=1.0, slope=hinge, decreasing=True)[0]
    np.testing.assert_allclose(model.progressive(X, y), expected, atol=1e-9)


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


def test_reference__is_the_paper_s():
    # Woodbury: with S and H as kept, H is the inverse of αI + SSᵀ, so the reference's step is −A⁻¹g with A = αI + SᵀS.
    X, y = stream(0, n=50)
    V = np.linalg.qr(np.random.default_rng(1).standard_normal((X.shape[1], 3)))[0].T
    _, V, eigenvalues, _ = oja_son_dense(X, y, V, alpha=2.0, curvature=0.3, clip=1.0, rate=1.0)
    S = np.sqrt(eigenvalues)[:, None] * V
    A = 2.0 * np.eye(X.shape[1]) + S.T @ S
    H = np.diag(1 / (2.0 + eigenvalues))
    g = squared_slope(0.3, 1.0) * X[0]
    np.testing.assert_allclose(np.linalg.solve(A, g), (g - S.T @ H @ S @ g) / 2.0, atol=1e-12)


def test_start_from_gradients__keeps_the_sketch_orthonormal_on_rows_that_are_nearly_alike():
    # Each row that starts multiplies what V lacks of orthonormality: without a fold the sketch of such a stream was lost in ten rounds.
    draw = np.random.default_rng(0)
    X = draw.random(13) + 0.02 * np.geomspace(1, 0.1, 13) * draw.standard_normal((3000, 13))
    model = OjaSON(10, 0.0625)
    assert np.isfinite(model.progressive(X, draw.random(3000))).all()
    np.testing.assert_allclose(model.sketch_ @ model.sketch_.T, np.eye(10), atol=1e-9)
