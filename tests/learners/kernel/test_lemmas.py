"""The papers' lemmas and KONS: the same numbers by ways that share nothing but the problem; and the
NumPy peer of `make bench`.
"""

import numpy as np
import pytest

from koco_stream import KONS
from tests.bench.numpy_pros import numpy_pros
from tests.oracles.kernel import (
    beyond,
    feature_map,
    gram,
    kons_primal,
    lemma_4_literal,
    lemma_4_with_coin,
    project,
)
from tests.oracles.kernel_learners import Kors, ProsNKons, uniform
from tests.oracles.losses import slopes

learner_s = {
    "linear": {"kernel": "linear"},
    "quadratic": {"kernel": "polynomial", "degree": 2},
    "gaussian": {"bandwidth": 0.8},
}
KERNELS = list(learner_s)


def stream(seed=0, n=120, d=3, repeated=()):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1.0, 1.0, (n, d))
    for t in repeated:
        X[t] = X[t - 1]
    y = np.clip(
        np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.2 * draw.standard_normal(n), -0.9, 0.9
    )
    return X, y


def coins_of(n, rate, seed=1):
    return np.random.default_rng(seed).random(n) < rate


def cholesky_form(K, y, *, alpha, curvature, clip, slope, coins):
    """K4: one lower-triangular factor that grows by a row when a point joins."""
    n = len(K)
    c, scale = np.zeros(n), np.zeros(n)
    joined, L, s, predictions = [], np.zeros((0, 0)), np.zeros(0), []
    for t in range(n):
        v = scale[joined] * K[joined, t]
        w = np.linalg.solve(L, v)
        y_breve = (K[t, :t] @ c[:t] - w @ s) / alpha
        q = (K[t, t] - w @ w) / alpha
        h = beyond(y_breve, clip)
        predictions.append(y_breve - h)
        g = slope(predictions[t], y[t])
        c[t] = coins[t] * curvature * g * g * predictions[t] - g - (h / q if h else 0.0)
        s = s + w * c[t]
        scale[t] = g * np.sqrt(curvature)
        if coins[t]:
            row = np.linalg.solve(L, scale[joined] * K[joined, t] * scale[t])
            corner = np.sqrt(scale[t] ** 2 * K[t, t] + alpha - row @ row)
            q_t = scale[t] * (K[t, : t + 1] @ c[: t + 1])
            s = np.append(s, (q_t - row @ s) / corner)
            L = np.block([[L, np.zeros((len(joined), 1))], [row[None, :], np.array([[corner]])]])
            joined.append(t)
    return np.array(predictions)


@pytest.mark.parametrize("kernel", KERNELS)
def test_features_have_the_kernel_as_inner_product(kernel):
    X, _ = stream()
    Phi = feature_map(kernel, X, 1.3)
    np.testing.assert_allclose(Phi @ Phi.T, gram(kernel, X, X, 1.3), atol=1e-12)


def test_the_projection_is_the_nearest_point_of_the_slab():
    draw = np.random.default_rng(0)
    B = draw.standard_normal((4, 4))
    A, u, phi = B @ B.T + np.eye(4), 3.0 * draw.standard_normal(4), draw.standard_normal(4)
    w = project(u, phi, A, 0.1)
    assert abs(phi @ w) == pytest.approx(0.1)
    for _ in range(200):
        v = draw.standard_normal(4)
        v = v - (phi @ v) / (phi @ phi) * phi  # along the slab's face
        other = w + v
        assert (u - w) @ A @ (u - w) <= (u - other) @ A @ (u - other) + 1e-12


@pytest.mark.filterwarnings("ignore:a label")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clip", [0.3, 1.0])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_dual_forms_are_the_primal(kernel, clip, loss, rate):
    X, y = stream(seed=3)
    if loss != "squared":
        y = np.where(y > 0, 1.0, -1.0)
    coins, K = coins_of(len(y), rate), gram(kernel, X, X, 0.8)
    given = {"alpha": 0.5, "curvature": 0.2, "clip": clip, "slope": slopes[loss], "coins": coins}
    primal, g = kons_primal(feature_map(kernel, X, 0.8), y, **given)
    np.testing.assert_allclose(cholesky_form(K, y, **given), primal, atol=1e-10)
    if rate == 1.0:
        kons = KONS(0.5, curvature=0.2, clip=clip, loss=loss, **learner_s[kernel])
        np.testing.assert_allclose(kons.progressive(X, y), primal, atol=1e-9)
    assert loss == "squared_hinge" or np.abs(g).min() > 1e-6
    if np.abs(g).min() > 1e-6:  # the lemma divides by ġ²
        np.testing.assert_allclose(lemma_4_with_coin(K, y, **given), primal, atol=1e-8)
        if rate == 1.0:
            np.testing.assert_allclose(lemma_4_literal(K, y, **given), primal, atol=1e-8)


def test_lemma_4_needs_the_coin():
    X, y = stream(seed=5)
    K, given = (
        gram("gaussian", X, X, 0.8),
        {"alpha": 0.5, "curvature": 0.2, "clip": 1.0, "coins": coins_of(len(y), 0.5)},
    )
    primal, _ = kons_primal(feature_map("gaussian", X, 0.8), y, **given)
    assert np.abs(lemma_4_literal(K, y, **given) - primal).max() > 0.05
    np.testing.assert_allclose(lemma_4_with_coin(K, y, **given), primal, atol=1e-9)


def test_kons_is_follow_the_leader_of_its_own_surrogate():
    """Without projections w_{t+1} minimises α/2|w|² + Σ (g_sᵀw + η/2 (g_sᵀ(w − w_s))²): no
    recursion at all.
    """
    X, y = stream(seed=2, n=60)
    Phi = feature_map("quadratic", X)
    predictions, g = kons_primal(Phi, y, alpha=0.7, curvature=0.3, clip=np.inf)
    for t in (1, 10, 59):
        G = g[:t, None] * Phi[:t]
        A = 0.7 * np.eye(Phi.shape[1]) + 0.3 * G.T @ G
        w = np.linalg.solve(A, G.T @ (0.3 * g[:t] * predictions[:t] - 1.0))
        assert Phi[t] @ w == pytest.approx(predictions[t], abs=1e-11)


@pytest.mark.parametrize("inverses", [False, True])
@pytest.mark.parametrize("estimate", ["icml", "poster"])
def test_the_bench_s_numpy_peer_is_the_literal_algorithm(inverses, estimate):
    X, y = stream(seed=6, d=4)
    X[30:60] = X[np.random.default_rng(1).integers(0, 30, 30)]  # repetitions, of which some join
    shared = {"alpha": 0.7, "curvature": 0.2, "clip": 0.5}
    sampling = {"ridge": 0.3, "beta": 2.0, "epsilon": 0.5, "estimate": estimate}
    coins = [uniform(0, t) for t in range(1, 121)]
    ours, rows = numpy_pros(
        X, y, coins=coins, inverses=inverses, bandwidth=0.9, **sampling, **shared
    )
    kors = Kors(120, float, seed=0, **sampling)
    reference = ProsNKons(
        120, float, kors=kors, carry="none", loss="squared", decreasing=False, **shared
    )
    Phi = feature_map("gaussian", X, 0.9)
    expected = [reference.learn(phi, label) for phi, label in zip(Phi, y, strict=True)]
    assert rows == reference.points
    assert 5 < len(rows) < 115
    assert reference.seen["no coordinate"]
    np.testing.assert_allclose(ours, expected, atol=1e-8)
