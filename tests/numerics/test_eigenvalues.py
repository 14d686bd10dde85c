"""The eigensolver against LAPACK."""

import numpy as np
import pytest

from koco_stream.numerics.eigenvalues import eigen_rows


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (5, 5), (40, 40), (60, 7)])
def test_eigen_rows__are_eigenvectors_times_their_values(n, rank):
    root = np.random.default_rng(n).standard_normal((n, rank)) * np.geomspace(1, 1e-3, rank)
    K, padded = root @ root.T, np.zeros((64, 64))
    padded[:n, :n] = K
    eigen_rows(padded, n)
    lines, values = padded[:n, :n], np.linalg.norm(padded[:n, :n], axis=1)
    expected, largest = np.maximum(np.linalg.eigvalsh(K), 0), values.max()
    np.testing.assert_allclose(np.sort(values), expected, atol=1e-13 * largest)
    of_large = values > 1e-9 * largest
    images = lines[of_large] * values[of_large, None]
    np.testing.assert_allclose(lines[of_large] @ K, images, atol=1e-13 * largest**2)
