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
from tests.oracles.sketched_newton import BufferedFrequentDirections, FullMatrix, sketched_newton

SIGMA, C, L = 1 / 8, 1.0, 4.0  # of the squared loss with labels and predictions in [−1, 1]


def decaying_rows(n=400, d=12, seed=0):
    """Rows whose spectrum decays, with labels by a noisy linear rule."""
    draw = np.random.default_rng(seed)
    X = draw.standard_normal((n, d)) * 1.5 ** -np.arange(d)
    X /= 2 * np.linalg.norm(X, axis=1).max()
    return X, np.clip(2 * X @ draw.standard_normal(d) + 0.3 * draw.standard_normal(n), -1, 1)


def literal_fd(X, y, m, alpha, coefficient):
    """Algorithms 1 and 2 as printed: m rows, the last always zero. Predictions, S_T and Σ ρ_t."""
    d, lost, predictions = X.shape[1], 0.0, []
    S, u = np.zeros((m, d)), np.zeros(d)
    for x, label in zip(X, y, strict=True):
        inverse = np.linalg.inv(alpha * np.eye(d) + S.T @ S)
        w = u - np.sign(u @ x) * max(abs(u @ x) - C, 0.0) / (x @ inverse @ x) * inverse @ x
        predictions.append(w @ x)
        g = 2 * (w @ x - label) * x
        S[-1] = np.sqrt(coefficient) * g
        _, singular, V = np.linalg.svd(S, full_matrices=False)
        rho = singular[-1] ** 2
        S, lost = np.sqrt(np.maximum(singular**2 - rho, 0.0))[:, None] * V, lost + rho
        S[-1] = 0.0
        u = w - np.linalg.solve(alpha * np.eye(d) + S.T @ S, g)
    return np.array(predictions), S, lost


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
    norms2 = (G**2).sum() / (SIGMA + eta)
    for regret, w_norm2 in found:
        given = {
            "alpha": alpha,
            "w_norm2": w_norm2,
            "gradient_norms2": norms2,
            "curvature": SIGMA,
            "clip": C,
            "lipschitz": L,
        }
        bound = son_theorem_2(**given, n_features=12, step_sizes=np.full(400, eta))
        assert (
            0
            < regret
            <= bound
            < son_theorem_2(**given, n_features=50, step_sizes=np.full(400, eta))
        )


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


@pytest.mark.parametrize("m", [2, 4, 8])
@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_theorem_3__is_above_the_regret_of_frequent_directions_as_printed(alpha, m):
    X, y = decaying_rows()
    predictions, S, lost = literal_fd(X, y, m, alpha, SIGMA)
    found, G = compared(X, y, predictions, alpha, SIGMA)
    for k in range(m):
        assert lost <= omega(G, k) / (m - k) * (1 + 1e-9)  # what the proof needs of the sketch
        for regret, w_norm2 in found:
            given = {
                "alpha": alpha,
                "w_norm2": w_norm2,
                "sketch_size": m,
                "k": k,
                "omega_k": omega(G, k),
            }
            given |= {"step_sizes": np.zeros(400), "curvature": SIGMA, "clip": C, "lipschitz": L}
            bound = son_theorem_3(**given, sketch_trace=(S**2).sum())
            assert 0 < regret <= bound <= son_theorem_3(**given, sketch_trace=(G**2).sum())
    with pytest.raises(WrongInput):
        son_theorem_3(**{**given, "k": m}, sketch_trace=1.0)


@pytest.mark.parametrize("m", [1, 3, 6])
@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_theorem_3__for_a_buffer_is_above_the_buffered_learner_s_regret_and_what_its_sketch_loses(
    alpha, m
):
    X, y = decaying_rows()
    shared = {"alpha": alpha, "curvature": SIGMA, "clip": C, "slope": slopes["squared"]}
    predictions = sketched_newton(
        X, y, BufferedFrequentDirections(m), **shared
    ).predictions  # those of FDSON
    found, G = compared(X, y, predictions, alpha, SIGMA)
    sketch = buffered_sketch(G, m)
    lost = (G**2).sum() - (sketch**2).sum()
    for k in range(m + 1):
        assert lost <= (m + 1) / (m + 1 - k) * omega(G, k) * (1 + 1e-9)
        for regret, w_norm2 in found:
            given = {
                "alpha": alpha,
                "w_norm2": w_norm2,
                "sketch_size": m,
                "k": k,
                "omega_k": omega(G, k),
            }
            given |= {
                "step_sizes": np.zeros(400),
                "curvature": SIGMA,
                "clip": C,
                "lipschitz": L,
                "printed": False,
            }
            assert 0 < regret <= son_theorem_3(**given, sketch_trace=(sketch**2).sum())
    with pytest.raises(WrongInput):
        son_theorem_3(**{**given, "k": m + 1}, sketch_trace=1.0)


def buffered_sketch(G, m):
    """The rows of a sketch that keeps m rows and shrinks when m more have come."""
    kept = np.zeros((0, G.shape[1]))
    for g in G:
        kept = np.vstack([kept, g])
        if len(kept) == 2 * m:
            _, singular, V = np.linalg.svd(kept, full_matrices=False)
            squares = np.append(singular**2, np.zeros(2 * m))[: 2 * m]
            kept = np.sqrt(np.maximum(squares[:m] - squares[m], 0.0))[: len(V), None] * V[:m]
    return kept


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
