"""The theorems of Luo et al. (2016): their numbers, and runs that have to stay within them."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from koco_stream import OGD, ONS, WrongInput
from koco_stream.theory import (
    best_in_hindsight,
    hard_sequence,
    omega,
    son_theorem_1,
    son_theorem_2,
    son_theorem_3,
    spectrum,
)
from tests.oracles.losses import slopes
from tests.oracles.sketched_newton import (
    BufferedFrequentDirections,
    FrequentDirections,
    FullMatrix,
    sketched_newton,
)

SIGMA, C, L = 1 / 8, 1.0, 4.0  # of the squared loss with labels and predictions in [−1, 1]


def decaying_rows(n=400, d=12, seed=0):
    """Rows whose spectrum decays, with labels by a noisy linear rule."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, d)) * 1.5 ** -np.arange(d)
    X /= 2 * np.linalg.norm(X, axis=1).max()
    return X, np.clip(2 * X @ draw.standard_normal(d) + 0.3 * draw.standard_normal(n), -1, 1)


def compared(X, y, predictions, alpha, coefficient):
    """Regret and ‖w‖² against two feasible w, and G_T, of a run with the squared loss."""
    G = np.sqrt(coefficient) * (2 * (predictions - y))[:, None] * X
    found = []
    for ridge in (alpha, 1e-3):
        best = best_in_hindsight(X @ X.T, y, ridge).scaled_into(C)
        found.append((((predictions - y) ** 2).sum() - best.loss, best.norm2))
    return found, G


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
def test_omega__is_the_tail_of_the_spectrum_from_either_side_and_from_sparse_rows(shape):
    G = np.random.default_rng(0).standard_normal(shape) * (
        np.random.default_rng(1).random(shape) < 0.4
    )
    squares = np.linalg.svd(G, compute_uv=False) ** 2
    np.testing.assert_allclose(spectrum(G), squares, atol=1e-12)
    for k in (0, 3, 7, 9):
        assert omega(G, k) == pytest.approx(squares[k:].sum(), abs=1e-12)
        assert omega(csr_array(G), k) == pytest.approx(omega(G, k), abs=1e-12)
    with pytest.raises(WrongInput):
        omega(G, -1)


@pytest.mark.parametrize("eta", [0.0, 0.25])
@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_theorem_2__is_above_the_regret_of_the_online_newton_step(alpha, eta):
    X, y = decaying_rows()
    predictions = sketched_newton(
        X, y, FullMatrix(), alpha=alpha, curvature=SIGMA + eta, clip=C, slope=slopes["squared"]
    ).predictions
    found, G = compared(X, y, predictions, alpha, SIGMA + eta)
    given = {"alpha": alpha, "curvature": SIGMA, "clip": C, "lipschitz": L}
    given |= {"gradient_norms2": (G**2).sum() / (SIGMA + eta), "step_sizes": np.full(400, eta)}
    for regret, w_norm2 in found:
        bounds = [son_theorem_2(**given, w_norm2=w_norm2, n_features=d) for d in (12, 50)]
        assert 0 < regret <= bounds[0] < bounds[1]


def test_theorem_2__without_curvature_is_the_printed_simplification():
    d, T = 5, 10_000
    eta = np.sqrt(d / (C * L) ** 2 / np.arange(1, T + 1))
    given = {
        "alpha": 2.0,
        "w_norm2": 3.0,
        "n_features": d,
        "gradient_norms2": 700.0,
        "curvature": 0.0,
        "clip": C,
        "lipschitz": L,
    }
    root = C * L * np.sqrt(T * d)
    printed = 3.0 + 0.5 * root * np.log1p(700.0 / (2.0 * root)) + 4 * root
    assert 0.99 * printed < son_theorem_2(**given, step_sizes=eta) <= printed
    for wrong in (np.zeros(3), eta[::-1]):
        with pytest.raises(WrongInput):
            son_theorem_2(**given, step_sizes=wrong)


@pytest.mark.parametrize("m", [1, 3, 8])
@pytest.mark.parametrize("alpha", [0.05, 1.0])
@pytest.mark.parametrize("printed", [True, False])
def test_theorem_3__is_above_the_regret_and_what_the_sketch_loses(alpha, m, printed):
    # As printed, or for the buffer of FDSON, whose predictions the second oracle's are.
    X, y = decaying_rows()
    oracle = FrequentDirections(m) if printed else BufferedFrequentDirections(m)
    given = {"alpha": alpha, "curvature": SIGMA, "clip": C}
    run = sketched_newton(X, y, oracle, **given, slope=slopes["squared"])
    found, G = compared(X, y, run.predictions, alpha, SIGMA)
    given |= {"sketch_size": m, "printed": printed, "lipschitz": L, "step_sizes": np.zeros(400)}
    kept, shown = (run.sketch.rows() ** 2).sum(), (G**2).sum()
    rows = m if printed else m + 1
    for k in range(rows):
        # What the proof needs of the sketch.
        assert shown - kept <= rows / (rows - k) * omega(G, k) * (1 + 1e-9)
        for regret, w_norm2 in found:
            given |= {"w_norm2": w_norm2, "k": k, "omega_k": omega(G, k)}
            bound = son_theorem_3(**given, sketch_trace=kept)
            assert 0 < regret <= bound <= son_theorem_3(**given, sketch_trace=shown)
    with pytest.raises(WrongInput):
        son_theorem_3(**{**given, "k": rows}, sketch_trace=1.0)


@pytest.mark.parametrize(("rounds", "d"), [(240, 4), (150, 20), (23, 6)])
def test_hard_sequence__gives_learners_the_regret_of_theorem_1_on_average(rounds, d):
    # The hinge loss with predictions in [−1, 1] is 1 − yŷ: linear, with C = L = 1.
    least, regrets = son_theorem_1(rounds=rounds, n_features=d, clip=1.0, lipschitz=1.0), {}
    for seed in range(200):
        X, y = hard_sequence(rounds, d, seed)
        best = rounds - np.abs(y @ X).sum()
        learners = {
            "OGD": OGD(0.1, loss="hinge", clip=1.0),
            "ONS": ONS(1.0, loss="hinge", clip=1.0, curvature=1.0, curvature_schedule="decreasing"),
        }
        for name, learner in learners.items():
            regrets.setdefault(name, []).append((1.0 - y * learner.progressive(X, y)).sum() - best)
    for name, found in regrets.items():
        print(f"{name}, T = {rounds}, d = {d}: mean regret {np.mean(found):.2f}, least {least:.2f}")
        assert np.mean(found) >= least


def test_hard_sequence__has_a_block_for_each_feature_and_refuses_fewer_rounds():
    X, _ = hard_sequence(23, 6, 0)
    assert set(X.sum(axis=0)) <= {23 // 6, 23 // 6 + 1}
    assert (np.diff(X.argmax(axis=1)) >= 0).all()
    assert not np.array_equal(hard_sequence(60, 6, 0)[1], hard_sequence(60, 6, 1)[1])
    for refused in (
        lambda: hard_sequence(5, 6, 0),
        lambda: son_theorem_1(rounds=5, n_features=6, clip=1.0, lipschitz=1.0),
    ):
        with pytest.raises(WrongInput):
            refused()
