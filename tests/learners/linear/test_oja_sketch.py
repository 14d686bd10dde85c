"""Folds, clean-ups and random rows of Oja-SON's sketch, which are applied to a feature's line only
when it is next seen, against a literal sketch of all features that does everything at once.
"""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings, strategies as st

from koco_stream import OjaSON
from koco_stream.learners.linear import oja_son
from koco_stream.learners.linear.oja_basis import FOLDS
from tests.oracles.exact_algebra import gram_schmidt
from tests.oracles.losses import slopes
from tests.oracles.sketched_newton import Oja, SketchedNewton

M, D = 2, 300
SHARED = {"alpha": 1.0, "curvature": 0.5, "clip": 1.0}


class OjaFromAnyRows(Oja):
    """Oja's sketch from rows that are orthonormal in expectation only: V ← L⁻¹(V + γqĝᵀ) with the L
    that orthonormalises them if they are, LLᵀ = I + κqqᵀ.
    """

    def init(self, alpha, d, dtype):
        super().init(alpha, d, dtype)
        self.V = self.start.astype(dtype)

    def orthonormal(self, gamma, q, g_hat):
        """With M, the root of I + κqqᵀ, the rows of L⁻¹M are orthonormal."""
        kappa, size = 2 * gamma + gamma**2 * (g_hat @ g_hat), max(q @ q, self.dtype(1e-300))
        share, outer = np.sqrt(1 + kappa * size) - 1, np.outer(q, q) / size
        M, inverse = (np.eye(len(q)) + c * outer for c in (share, -share / (1 + share)))
        return gram_schmidt(M) @ inverse @ (self.V + gamma * np.outer(q, g_hat))


def sparse_rows(draw, n, seen, scale):
    """Rows of a few features, of which row t has some of the first `seen[t]`."""
    X = np.zeros((n, D))
    for t in range(n):
        chosen = draw.choice(seen[t], 4, replace=False)
        X[t, chosen] = scale * draw.standard_normal(4)
    return X, draw.uniform(-1, 1, n)


def random_rows_by_need(seed, **given):
    return OjaSON(M, sketch_start="random", seed=seed, **SHARED, **given)


@settings(max_examples=12, deadline=None)
@given(
    stream=st.integers(0, 10_000),
    scale=st.sampled_from([0.3, 3.0, 100.0]),
    rate=st.sampled_from([1.0, 16.0]),
    diagonal=st.sampled_from([False, True, "updated"]),
)
@pytest.mark.filterwarnings("ignore:(a label|the first rows)")
def test_rows_drawn_by_need__are_as_if_all_had_been_drawn_at_the_start(
    stream, scale, rate, diagonal
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oja_son, "DRAW_AT", 1)
        draw = np.random.default_rng(stream)
        # New features come all the time, also after the maps of a period were discarded.
        X, y = sparse_rows(draw, 60, np.linspace(5, 40, 60).astype(int), scale)
        options = {"sketch_rate": rate, "diagonal": diagonal}
        start = random_rows_by_need(stream, **options).partial_fit(X[:0], y[:0]).sketch_
        model, ahead = random_rows_by_need(stream, **options), []
        predictions = model.progressive(X, y)
        asked = random_rows_by_need(stream, **options).partial_fit(X[:0], y[:0])
        for t in range(60):  # between the rounds, from lines that are not up to date
            ahead.append(asked.predict(X[t : t + 3])[0])
            asked.partial_fit(X[t : t + 1], y[t : t + 1])
    assert ahead == predictions.tolist()
    given = {"slope": slopes["squared"], "diagonal": diagonal, "projection": "weights", **SHARED}
    text = SketchedNewton(sketch=OjaFromAnyRows(M, rate, start), **given).run(X, y, np.longdouble)
    np.testing.assert_allclose(predictions, text.predictions.astype(float), atol=1e-9)
    np.testing.assert_allclose(model.sketch_, text.sketch.V.astype(float), atol=1e-9)
    np.testing.assert_allclose(model.coef_, text.w.astype(float), rtol=1e-8, atol=1e-8)
    if scale == 100.0 and not diagonal:
        assert model._state.diagnostics.folds > FOLDS  # the maps of a period were discarded


def test_rows_drawn_by_need__are_orthonormal_in_expectation_and_independent_of_the_rows_seen():
    d, m = 20_000, 5
    at_once = OjaSON(m, sketch_start="random", seed=3).partial_fit(
        scipy.sparse.csr_array((0, d)), np.zeros(0)
    )
    V = at_once.sketch_
    assert np.abs(V @ V.T - np.eye(m)).max() < 6 * np.sqrt(2 / d)
    assert not at_once._state.table.any()  # reading drew them on a copy
    row = scipy.sparse.csr_array(([1e-9], [12_345], [0, 1]), (1, d))
    at_once.partial_fit(row, np.zeros(1))
    assert at_once._state.maps.n_used == 1
    np.testing.assert_allclose(at_once.sketch_, V, atol=1e-12)
    other = OjaSON(m, sketch_start="random", seed=4).partial_fit(row, np.zeros(1))
    assert np.abs(other.sketch_ - V).max() > 1 / np.sqrt(d)


def test_start_from_gradients__keeps_the_sketch_orthonormal_on_rows_that_are_nearly_alike():
    # Each row that starts multiplies what V lacks of orthonormality: without a fold the sketch of
    # such a stream was lost in ten rounds.
    draw = np.random.default_rng(0)
    X = draw.random(13) + 0.02 * np.geomspace(1, 0.1, 13) * draw.standard_normal((3000, 13))
    model = OjaSON(6, 0.0625)
    assert np.isfinite(model.progressive(X, draw.random(3000))).all()
    np.testing.assert_allclose(model.sketch_ @ model.sketch_.T, np.eye(6), atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("rate", [1.0, 16.0, 128.0])
def test_sketch__stays_orthonormal_over_many_rounds_with_few_folds(rate):
    draw = np.random.default_rng(1)
    model = OjaSON(10, 20.0, sketch_rate=rate, sketch_start="random")
    theta = draw.standard_normal(20)
    for _ in range(10):
        X = draw.standard_normal((100_000, 20)) / np.sqrt(20)
        model.partial_fit(X, np.clip(X @ theta, -1, 1))
        np.testing.assert_allclose(model.sketch_ @ model.sketch_.T, np.eye(10), atol=1e-9)
    assert model.rounds_ == 10**6
    assert int(model._state.diagnostics.folds) <= 200
