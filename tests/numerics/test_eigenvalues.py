"""The eigensolver against LAPACK."""

import numpy as np
import pytest

from koco_stream.numerics.eigenvalues import eigen_rows


def turned(K):
    """What `eigen_rows` leaves of a matrix (n, n)."""
    n, padded = len(K), np.zeros((64, 64))
    padded[:n, :n] = K
    eigen_rows(padded, n)
    return padded[:n, :n]


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize(("n", "rank"), [(1, 1), (5, 5), (40, 40), (60, 7), (6, 0)])
def test_eigen_rows__are_eigenvectors_times_their_values(n, rank, size):
    root = np.random.default_rng(n).standard_normal((n, rank)) * np.geomspace(1, 1e-3, rank)
    root[n // 2 :] = root[: n - n // 2]  # repeated rows
    K = root @ root.T
    lines = turned(K * size) / size
    values = np.linalg.norm(lines, axis=1)
    expected, largest = np.maximum(np.linalg.eigvalsh(K), 0), values.max()
    np.testing.assert_allclose(np.sort(values), expected, atol=1e-13 * largest)
    of_large = values > 1e-9 * largest
    images = lines[of_large] * values[of_large, None]
    np.testing.assert_allclose(lines[of_large] @ K, images, atol=1e-13 * largest**2)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite__is_seen(wrong):
    K = np.eye(5)
    K[3, 3] = wrong
    assert np.isnan(turned(K)).any(axis=1).any()
