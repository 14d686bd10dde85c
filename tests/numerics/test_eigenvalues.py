"""The eigensolver against LAPACK."""

import numpy as np
import pytest

from koco_stream.numerics.eigenvalues import symmetric_eigen


def decomposed(K):
    """The eigenvalues (n,) of a matrix (n, n), and its eigenvectors, a row each."""
    n, padded = len(K), np.zeros((64, 64))
    padded[:n, :n] = K
    values, *scratch = np.zeros((3, 64))
    symmetric_eigen(padded, n, values, *scratch)
    return values[:n], padded[:n, :n]


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize(("n", "rank"), [(1, 1), (5, 5), (40, 40), (60, 7), (6, 0)])
def test_symmetric_eigen__gives_eigenvectors_and_their_values(n, rank, size):
    root = np.random.default_rng(n).standard_normal((n, rank)) * np.geomspace(1, 1e-3, rank)
    root[n // 2 :] = root[: n - n // 2]  # repeated rows
    K = root @ root.T
    values, vectors = decomposed(K * size)
    values = values / size
    expected, largest = np.maximum(np.linalg.eigvalsh(K), 0), values.max()
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(np.sort(values), expected, atol=1e-13 * largest)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(n), atol=1e-13)
    np.testing.assert_allclose(vectors @ K, values[:, None] * vectors, atol=1e-13 * largest)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite__is_seen(wrong):
    K = np.eye(5)
    K[3, 3] = wrong
    assert np.isnan(decomposed(K)[0]).any()
