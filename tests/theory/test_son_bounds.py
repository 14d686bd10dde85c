"""The theorems of Luo et al. (2016): their numbers, and runs that have to stay within them."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from koco_stream import WrongInput
from koco_stream.theory.bounds import best_in_hindsight, son_theorem_2, son_theorem_3, spectrum_of
from tests.oracles.losses import slopes
from tests.oracles.sketched_newton import BufferedFrequentDirections, FullMatrix, sketched_newton

SIGMA, C, L = 1 / 8, 1.0, 4.0  # of the squared loss with labels and predictions in [−1, 1]
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
    predictions, _, sketch, _ = sketched_newton(X, y, sketch, **given)
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
    found, G, sketch = compared(*decaying_rows(), BufferedFrequentDirections(m), alpha, SIGMA)
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
    with pytest.raises(WrongInput):
        son_theorem_2(**FLAT, step_sizes=steps)
