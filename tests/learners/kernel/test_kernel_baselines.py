"""FOGD, NOGD and DualSGD: limits in which they are other learners, and what must be true."""

import numpy as np
import pytest
import scipy.sparse

from koco_stream import FOGD, NOGD, OGD, DualSGD, WrongInput
from koco_stream.kernels.random_features import frequencies
from koco_stream.numerics.eigenvalues import eigen_rows
from tests.oracles.kernel import gram

EXACT = {"rtol": 1e-9, "atol": 1e-9}


def frequency_matrix(d, n, bandwidth, seed):
    """U (d, n): the columns are the frequencies."""
    return frequencies(d, n, bandwidth, seed).transpose(1, 0, 2).reshape(d, -1)[:, :n]


@pytest.mark.parametrize("rank", [4, 12])
def test_nogd_linear_kernel_of_full_rank__is_linear_gradient_descent(rank):
    draw = np.random.default_rng(3)
    X = draw.standard_normal((200, 4))
    y = np.clip(X @ draw.standard_normal(4), -1, 1)
    nogd = NOGD(0.05, budget=12, rank=rank, kernel="linear").progressive(X, y)
    np.testing.assert_allclose(nogd, OGD(0.05, clip=1e9).progressive(X, y), **EXACT)


def test_nogd_of_full_rank__features_of_its_points_have_the_kernel_as_inner_products():
    X = np.random.default_rng(0).standard_normal((40, 5))
    model = NOGD(0.1, budget=17, rank=17).partial_fit(X[:10], np.ones(10))
    with pytest.raises(WrongInput, match="10 points yet"):
        model.features(X)
    model.partial_fit(X[10:], np.ones(30))
    assert model.dictionary_.tolist() == list(range(17))
    Z = model.features(X[model.dictionary_])
    np.testing.assert_allclose(Z @ Z.T, gram("gaussian", X[:17], X[:17], 1.0), atol=1e-12)


def test_nogd_of_nearly_repeated_points__drops_what_is_no_feature():
    draw = np.random.default_rng(0)
    repeated, y = draw.standard_normal((3, 5))[np.arange(40) % 3], np.sin(np.arange(40))
    near = repeated + 1e-9 * draw.standard_normal((40, 5))
    model = NOGD(0.2, budget=9, rank=9)
    expected = NOGD(0.2, budget=9, rank=9).progressive(repeated, y)
    np.testing.assert_allclose(model.progressive(near, y), expected, rtol=0, atol=1e-7)
    assert (np.abs(model.features(near)).sum(0) > 0).sum() == 3


def test_frequencies__are_normal_and_nested_and_approximate_the_kernel():
    U = frequency_matrix(6, 4000, 2.0, 7)
    assert abs(U.mean()) < 4 * 0.5 / np.sqrt(U.size)
    assert abs(U.std() - 0.5) < 4 * 0.5 / np.sqrt(2 * U.size)
    assert (frequency_matrix(3, 10, 2.0, 7) == U[:3, :10]).all()
    assert not np.isin(frequency_matrix(6, 4000, 2.0, 8), U).any()
    X = np.random.default_rng(1).standard_normal((20, 6))
    Z = FOGD(n_frequencies=4000, bandwidth=2.0, seed=7).partial_fit(X, np.zeros(20)).features(X)
    np.testing.assert_allclose((Z**2).sum(1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(Z @ Z.T, gram("gaussian", X, X, 2.0), atol=5 / np.sqrt(4000))


def test_dual_sgd__a_smaller_budget_costs_only_the_approximation():
    draw = np.random.default_rng(2)
    X = draw.random((600, 3))
    y = np.sin(3 * X.sum(1))
    whole = DualSGD(regularisation=0.01, budget=600, n_frequencies=1).progressive(X, y)
    few = DualSGD(regularisation=0.01, budget=20, n_frequencies=2000).progressive(X, y)
    assert np.mean((whole[100:] - few[100:]) ** 2) < 0.02 * np.mean(whole[100:] ** 2)


@pytest.mark.parametrize("make", [FOGD, NOGD])
def test_predictions__are_not_truncated_and_nothing_is_said_of_clip(make):
    X = np.ones((50, 2))
    assert make(0.3, clip=1.0).progressive(X, np.full(50, 5.0))[-1] == pytest.approx(5.0)


@pytest.mark.parametrize("cut", [9, 60])
@pytest.mark.parametrize("make", [FOGD, NOGD, DualSGD])
def test_saved__before_and_after_the_budget_is_reached_goes_on_to_the_same_bits(
    make, cut, tmp_path
):
    more = {"n_frequencies": 20} if make is not NOGD else {}
    more |= {"budget": 30} if make is not FOGD else {}
    draw = np.random.default_rng(6)
    X = scipy.sparse.random(120, 500, 0.02, "csr", rng=draw)
    y = np.sin(np.arange(120.0))
    whole = make(**more, seed=3).progressive(X, y)
    make(**more, seed=3).partial_fit(X[:cut], y[:cut]).save(tmp_path / "m.koco")
    assert (
        make.load(tmp_path / "m.koco").progressive(X[cut:], y[cut:]).tobytes()
        == whole[cut:].tobytes()
    )


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
