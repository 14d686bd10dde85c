"""The papers' quantities against their definitions, and the papers' inequalities on random and on
real rows.
"""

import numpy as np
import pytest

from flows.preparing.preparation import prepare_named
from flows.report.rows import rows_of_stream
from koco_stream import KONS, WrongInput
from koco_stream.losses import curvature_of
from koco_stream.streams.stream import Stream
from koco_stream.theory.bounds import best_in_hindsight, effective_dimension, theorem_1_curved
from tests.oracles.losses import slopes
from tests.oracles.sketched_newton import FullMatrix, sketched_newton
from tests.oracles.theorems import (
    curvature_term,
    gradient_term,
    log_det,
    newton_regret_bound,
    online_effective_dimension,
    rescaled_kernel,
    theorem_1,
    theorem_1_curved_as_printed,
)

SIGMA, C, L = 1 / 8, 1.0, 4.0  # of the squared loss with labels and predictions in [−1, 1]
SQUARED = {"curvature": SIGMA, "lipschitz": L}


def gaussian(X, bandwidth):
    """The kernel's values of all rows of X with each other."""
    return np.array([np.exp(-np.sum((X - x) ** 2, axis=1) / (2.0 * bandwidth**2)) for x in X])


draw = np.random.default_rng(0)
X = draw.random((120, 3))
Y = np.clip(np.sin(5 * X[:, 0]) * X[:, 1] + 0.1 * draw.standard_normal(120), -1, 1)


def features_of(K):
    """Rows whose inner products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


@pytest.mark.parametrize("ridge", [1e-4, 0.1, 3.0])
def test_effective_dimension__is_the_sum_of_the_leverage_scores(ridge):
    K = gaussian(X[:60], 0.5)
    scores = np.diag(K @ np.linalg.inv(K + ridge * np.eye(60)))
    assert effective_dimension(K, ridge) == pytest.approx(scores.sum(), rel=1e-9)


def test_what_is_no_kernel_matrix__has_no_best_function():
    with pytest.raises(WrongInput, match="K is not a kernel matrix"):
        best_in_hindsight(-2 * np.eye(3), np.ones(3), 1.0)


def test_best_in_hindsight__has_zero_gradient_and_scales_into_the_clip():
    K, y = gaussian(X[:40], 0.5), Y[:40]
    predictions, norm2 = best_in_hindsight(K, y, 0.3)
    np.testing.assert_allclose(K @ (predictions - y) + 0.3 * predictions, 0.0, atol=1e-11)
    assert norm2 == pytest.approx((y - predictions) @ predictions / 0.3)
    largest = np.abs(predictions).max()
    small, small_norm2 = best_in_hindsight(K, y, 0.3, largest / 2)
    np.testing.assert_allclose(small, predictions / 2)
    assert (np.abs(small).max(), small_norm2) == (largest / 2, pytest.approx(norm2 / 4))
    np.testing.assert_array_equal(best_in_hindsight(K, y, 0.3, largest + 1)[0], predictions)


@pytest.mark.parametrize("factor", [1.0, 3.0], ids=["the curvature", "thrice the curvature"])
@pytest.mark.parametrize(("bandwidth", "alpha"), [(0.2, 1.0), (1.0, 0.1)])
def test_regret__of_the_online_newton_step_is_below_every_bound(bandwidth, alpha, factor):
    K, eta = gaussian(X, bandwidth), np.full(len(Y), factor * SIGMA)
    given = {"alpha": alpha, "curvature": factor * SIGMA, "clip": C, "slope": slopes["squared"]}
    predictions = sketched_newton(features_of(K), Y, FullMatrix(), **given)[0]
    gradients = 2 * (predictions - Y)
    R_G = gradient_term(K, gradients, eta, alpha)
    d_onl = online_effective_dimension(rescaled_kernel(K, gradients, eta), alpha)
    assert np.isclose(R_G, d_onl / eta[0])
    for ridge in (alpha, 1e-3):
        best, norm2 = best_in_hindsight(K, Y, ridge, C)
        regret = ((predictions - Y) ** 2).sum() - ((best - Y) ** 2).sum()
        R_D = curvature_term(predictions, best, gradients, eta, SIGMA)
        newton = newton_regret_bound(alpha, norm2, R_G, R_D)
        shared = {"alpha": alpha, "w_norm2": norm2, "curvature": SIGMA, "lipschitz": L}
        first = theorem_1(**shared, d_onl=d_onl, step_sizes=eta, clip=C)
        assert regret <= newton <= first
        if factor == 1.0:
            shared |= {"d_eff": effective_dimension(K, alpha / (SIGMA * L**2)), "rounds": len(Y)}
            bound = theorem_1_curved(**shared)
            assert first <= bound <= theorem_1_curved_as_printed(**shared)


@pytest.mark.data
@pytest.mark.parametrize("name", ["parkinsons", "cpusmall", "cadata", "casp", "slice", "year"])
def test_kons__regret_is_below_half_the_print_on_the_first_rows_of_real_sets(
    name, data_folder, tmp_path
):
    # docs/errata.md, K10: η = σ, so R_D = 0.
    # The features and the target are scaled to [0, 1].
    manifest = prepare_named(tmp_path, name, [data_folder / name], {"scale": "minmax"})
    rows, y = rows_of_stream(tmp_path, Stream(name, manifest.dataset_hash, max_rows=2000))
    X = rows.toarray()
    K, alpha, sigma = gaussian(X, 8.0), 1.0, curvature_of("squared", 1.0)
    predictions = KONS(alpha, clip=1.0, bandwidth=8.0, curvature=sigma).progressive(X, y)
    best, norm2 = best_in_hindsight(K, y, alpha, 1.0)
    regret = ((predictions - y) ** 2).sum() - ((best - y) ** 2).sum()
    bound = newton_regret_bound(
        alpha, norm2, gradient_term(K, 2 * (predictions - y), np.full(len(y), sigma), alpha)
    )
    assert regret <= bound


def test_theorem_1__printed_second_form_fails_for_a_tiny_alpha_and_ours_does_not():
    K, given = np.eye(3), {"alpha": 1e-12, "w_norm2": 0.0, "rounds": 3, **SQUARED}
    given["d_eff"] = effective_dimension(K, 1e-12 / 2)
    upper = log_det(K, 1e-12 / (SIGMA * L**2)) / SIGMA
    assert theorem_1_curved_as_printed(**given) < upper <= theorem_1_curved(**given)
