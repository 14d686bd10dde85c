"""FOGD, NOGD and DualSGD: limits in which they are other learners, and what must be true."""

import numpy as np
import pytest

from koco_stream import NOGD
from koco_stream.kernels.random_features import frequencies
from koco_stream.numerics.eigenvalues import eigen_rows

EXACT = {"rtol": 1e-9, "atol": 1e-9}


def frequency_matrix(d, n, bandwidth, seed):
    """U (d, n): the columns are the frequencies."""
    return frequencies(d, n, bandwidth, seed).transpose(1, 0, 2).reshape(d, -1)[:, :n]


def test_nogd_of_nearly_repeated_points__drops_what_is_no_feature():
    draw = np.random.default_rng(0)
    repeated, y = draw.standard_normal((3, 5))[np.arange(40) % 3], np.sin(np.arange(40))
    near = repeated + 1e-9 * draw.standard_normal((40, 5))
    model = NOGD(0.2, budget=9, rank=9)
    expected = NOGD(0.2, budget=9, rank=9).progressive(repeated, y)
    np.testing.assert_allclose(model.progressive(near, y), expected, rtol=0, atol=1e-7)
    assert (np.abs(model.features(near)).sum(0) > 0).sum() == 3


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (5, 5), (40, 40), (60, 7)])
def test_eigen_rows__are_eigenvectors_times_their_values(n, rank):
    root = np.random.default_rng(n).standard_normal((n, rank)) * np.geomspace(1, 1e-3, rank)
    K = root @ root.T
    padded = np.zeros((64, 64))
    padded[:n, :n] = K
    eigen_rows(padded, n)
    lines = padded[:n, :n]
    values = np.sort(np.linalg.norm(lines, axis=1))
    np.testing.assert_allclose(
        values, np.maximum(np.linalg.eigvalsh(K), 0), atol=1e-13 * values[-1]
    )
    large = lines[np.linalg.norm(lines, axis=1) > 1e-9 * values[-1]]
    np.testing.assert_allclose(
        large @ K, large * np.linalg.norm(large, axis=1)[:, None], atol=1e-13 * values[-1] ** 2
    )
