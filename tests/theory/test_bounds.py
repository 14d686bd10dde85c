"""The papers' quantities against their definitions, their inequalities on random and on real rows,
and runs that have to stay within the theorems.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array

from flows.preparing.preparation import prepare_named
from flows.report.rows import rows_of_stream
from koco_stream import KONS
from koco_stream.losses import curvature_of
from koco_stream.streams.stream import Stream
from koco_stream.theory.bounds import (
    best_in_hindsight,
    effective_dimension,
    son_theorem_2,
    son_theorem_3,
    spectrum_of,
    theorem_1_curved,
)
from tests.helpers.refusal import refusal
from tests.oracles.losses import slopes
from tests.oracles.sketched_newton import FrequentDirections, FullMatrix, SketchedNewton
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
    refusal("K is not a kernel matrix", best_in_hindsight, -2 * np.eye(3), np.ones(3), 1.0)


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
    predictions = SketchedNewton(sketch=FullMatrix(), **given).run(features_of(K), Y).predictions
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
    K, given = (
        np.eye(3),
        {"alpha": 1e-12, "w_norm2": 0.0, "rounds": 3, "curvature": SIGMA, "lipschitz": L},
    )
    given["d_eff"] = effective_dimension(K, 1e-12 / 2)
    upper = log_det(K, 1e-12 / (SIGMA * L**2)) / SIGMA
    assert theorem_1_curved_as_printed(**given) < upper <= theorem_1_curved(**given)


# Theorem 2 for a loss without curvature, 10,000 rounds and five features.
FLAT = {"alpha": 2.0, "w_norm2": 3.0, "n_features": 5, "gradient_norms2": 700.0}
FLAT |= {"curvature": 0.0, "clip": C, "lipschitz": L}
STEPS = np.sqrt(5 / (C * L) ** 2 / np.arange(1, 10_001))


def decaying_rows(n=400, d=12, seed=0):
    """Rows whose spectrum decays, with labels by a noisy linear rule."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, d)) * 1.5 ** -np.arange(d)
    X /= 2 * np.linalg.norm(X, axis=1).max()
    return X, np.clip(2 * X @ draw.standard_normal(d) + 0.3 * draw.standard_normal(n), -1, 1)


def compared(X, y, sketch, alpha, coefficient):
    """A run with the squared loss: regret and ‖w‖² against two feasible w, the gradients times
    √coefficient, and the sketch.
    """
    given = {"alpha": alpha, "curvature": coefficient, "clip": C, "slope": slopes["squared"]}
    predictions = SketchedNewton(sketch=sketch, **given).run(X, y).predictions
    found = []
    for ridge in (alpha, 1e-3):
        best, norm2 = best_in_hindsight(X @ X.T, y, ridge, C)
        found.append((((predictions - y) ** 2).sum() - ((best - y) ** 2).sum(), norm2))
    return found, np.sqrt(coefficient) * (2 * (predictions - y))[:, None] * X, sketch


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
def test_spectrum__is_that_from_either_side(shape):
    draw = np.random.default_rng(0)
    G = draw.standard_normal(shape) * (draw.random(shape) < 0.4)
    squares = np.linalg.svd(G, compute_uv=False) ** 2
    np.testing.assert_allclose(spectrum_of(csr_array(G)), squares, atol=1e-12)


@pytest.mark.parametrize("eta", [0.0, 0.25])
@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_theorem_2__is_above_the_regret_of_the_online_newton_step(alpha, eta):
    found, G, _ = compared(*decaying_rows(), FullMatrix(), alpha, SIGMA + eta)
    given = {"alpha": alpha, "curvature": SIGMA, "clip": C, "lipschitz": L}
    given |= {"gradient_norms2": (G**2).sum() / (SIGMA + eta), "step_sizes": np.full(400, eta)}
    for regret, w_norm2 in found:
        bounds = [son_theorem_2(**given, w_norm2=w_norm2, n_features=d) for d in (12, 50)]
        assert 0 < regret <= bounds[0] < bounds[1]


def test_theorem_2__without_curvature_is_the_printed_simplification():
    root = C * L * np.sqrt(10_000 * 5)
    printed = 3.0 + 0.5 * root * np.log1p(700.0 / (2.0 * root)) + 4 * root
    assert 0.99 * printed < son_theorem_2(**FLAT, step_sizes=STEPS) <= printed


@pytest.mark.parametrize("m", [1, 3, 8])
@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_theorem_3__is_above_the_regret_and_what_the_sketch_loses(alpha, m):
    """For the buffer of FDSON."""
    found, G, sketch = compared(*decaying_rows(), FrequentDirections("FDSON", m, m), alpha, SIGMA)
    kept, values, rows = sketch.eigenvalues.sum(), spectrum_of(csr_array(G)), m + 1
    given = {"alpha": alpha, "sketch_size": m, "curvature": SIGMA, "clip": C, "lipschitz": L}
    given["step_sizes"] = np.zeros(400)
    for k in range(rows):
        # What the proof needs of the sketch.
        assert values.sum() - kept <= rows / (rows - k) * values[k:].sum() * (1 + 1e-9)
    for regret, w_norm2 in found:
        assert 0 < regret <= son_theorem_3(**given, w_norm2=w_norm2, spectrum=values)


@pytest.mark.parametrize("steps", [np.zeros(3), STEPS[::-1]], ids=["0", "growing"])
def test_steps_that_no_theorem_is_about__are_refused(steps):
    refusal(None, son_theorem_2, **FLAT, step_sizes=steps)
