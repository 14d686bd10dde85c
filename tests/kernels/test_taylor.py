"""The Taylor features of the Gaussian kernel against their definition and against the kernel."""

from itertools import pairwise, product
from math import comb, exp, factorial

import numpy as np
import pytest
import scipy.sparse

from koco_stream.kernels.kernel import gaussian_kernel
from koco_stream.kernels.taylor import taylor_features, taylor_row

pytestmark = pytest.mark.one_python


def features(X, bandwidth, degree):
    kernel, (n, d) = gaussian_kernel(bandwidth), X.shape
    of = taylor_features(kernel, d, degree)
    out = np.full((n, comb(d + degree, degree)), np.nan)
    rows = scipy.sparse.csr_array(X)
    for t in range(n):
        own = slice(rows.indptr[t], rows.indptr[t + 1])
        taylor_row(kernel, of, rows.indices[own], rows.data[own], out[t])
    assert not of.x.any()
    return out


def literal(x, bandwidth, degree):
    """The formula, for every multi-index."""
    found = []
    for k in product(range(degree + 1), repeat=x.size):
        if sum(k) <= degree:
            term = exp(-(x @ x) / (2 * bandwidth**2))
            for x_i, k_i in zip(x, k, strict=True):
                term *= x_i**k_i / (bandwidth**k_i * factorial(k_i) ** 0.5)
            found.append(term)
    return found


def cut(X, bandwidth, degree):
    """The kernel's values, with the series of exp(xᵀx'/σ²) cut after the degree."""
    inner, norms = X @ X.T / bandwidth**2, (X**2).sum(1) / (2 * bandwidth**2)
    series = sum(inner**m / factorial(m) for m in range(degree + 1))
    return np.exp(-norms[:, None] - norms[None]) * series


def rows_of(d):
    draw = np.random.default_rng(d)
    X = draw.standard_normal((12, d)) * (draw.random((12, d)) < 0.8)
    X[3] = 0.0
    return X


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("degree", [1, 2, 6])
@pytest.mark.parametrize("bandwidth", [0.7, 3.0])
def test_taylor_features__are_the_formula_s(d, degree, bandwidth):
    X = rows_of(d)
    found, expected = features(X, bandwidth, degree), [literal(x, bandwidth, degree) for x in X]
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found @ found.T, cut(X, bandwidth, degree), rtol=0, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_inner_products__approach_the_kernel_as_the_degree_grows(d):
    X = rows_of(d)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * 2.0**2))
    errors = []
    for degree in (1, 2, 4, 7, 11, 20):
        phi = features(X, 2.0, degree)
        errors.append(abs(phi @ phi.T - K).max())
    assert all(after < before for before, after in pairwise(errors[:4]))
    assert errors[-1] < 1e-11 < 1e-3 < errors[0]


@pytest.mark.parametrize("far", [1e3, 1e200, 1e308])
@pytest.mark.parametrize("bandwidth", [1e-200, 1.0])
def test_row_far_from_the_origin__has_no_features(far, bandwidth):
    assert not features(np.array([[far, -far], [far, 0.0]]), bandwidth, 20).any()


def test_row_of_zeros__has_the_first_feature_only():
    for bandwidth in (1e-200, 1.0, 1e200):
        phi = features(np.zeros((1, 3)), bandwidth, 4)
        assert phi[0, 0] == 1.0
        assert not phi[0, 1:].any()
