"""Forward substitution: the numbers of a dense solve, and zeros in the padding."""

import numpy as np
import pytest

from koco_stream.kernels.dictionary import panels
from koco_stream.numerics.triangular import append_row, substitute


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 40])
def test_substitute__solves_and_clears_the_padding(n):
    draw = np.random.default_rng(n)
    dense = np.tril(draw.standard_normal((n, n)), -1) + np.diag(1.0 + draw.random(n))
    L, right, out = panels(48, 48), draw.standard_normal(48), np.full(48, 7.0)
    for i in range(n):
        append_row(L, i, dense[i], dense[i, i])
    substitute(L, n, right, out)
    np.testing.assert_allclose(dense @ out[:n], right[:n], atol=1e-9)
    end = 16 * ((n + 15) // 16)
    assert (out[n:end] == 0.0).all()
    assert (out[end:] == 7.0).all()


def test_substitute__is_exact_for_a_matrix_nearby_however_ill_conditioned():
    n = 40
    hilbert = 1.0 / (1.0 + np.arange(n)[:, None] + np.arange(n))
    dense = np.linalg.cholesky(hilbert + 1e-13 * np.eye(n))
    L, right, out = panels(48, 48), np.ones(48), np.zeros(48)
    for i in range(n):
        append_row(L, i, dense[i], dense[i, i])
    substitute(L, n, right, out)
    assert np.linalg.cond(dense) > 1e6
    error = np.abs(dense @ out[:n] - 1.0)
    assert (error <= n * 1.2e-16 * (np.abs(dense) @ np.abs(out[:n]))).all()
