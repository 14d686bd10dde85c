"""The papers' lemmas and the literal KONS: the same numbers by ways that share nothing but the
problem; and the NumPy peer of `make bench`.
"""

import numpy as np
import pytest

from tests.bench.numpy_pros import numpy_pros
from tests.oracles.kernel import gram, lemma_4
from tests.oracles.kernel_learners import Kons, Kors, ProsNKons, features, uniform
from tests.oracles.losses import slopes

# The names of the kernels in `gram`, and what `features` needs of them.
KERNELS = {
    "linear": ("linear", 1.0, 1),
    "quadratic": ("polynomial", 1.0, 2),
    "gaussian": ("gaussian", 0.8, 1),
}


def features_of(kernel, X):
    name, bandwidth, degree = KERNELS[kernel]
    return features(name, X, bandwidth, degree)


def stream(seed=0, n=120, d=3):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-1.0, 1.0, (n, d))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.2 * draw.standard_normal(n)
    return X, np.clip(y, -0.9, 0.9)


class Coins:
    """Instead of KORS: whether a row joins the sketch is given."""

    def __init__(self, coins):
        self.coins = iter(coins)

    def offer(self, phi):
        return float(next(self.coins)), False, 0.5


def primal(Phi, y, *, coins=None, loss="squared", alpha, curvature, clip):
    """(predictions, slopes) of the literal KONS, or of Algorithm 3 with these coins."""
    constants = {"loss": loss, "alpha": alpha, "curvature": curvature, "clip": clip}
    kors = None if coins is None else Coins(coins)
    kons = Kons(Phi.shape[1], float, kors=kors, decreasing=False, **constants)
    predictions = np.array([kons.learn(phi, label) for phi, label in zip(Phi, y, strict=True)])
    return predictions, np.array([slopes[loss](*pair) for pair in zip(predictions, y, strict=True)])


@pytest.mark.parametrize("kernel", KERNELS)
def test_features_have_the_kernel_as_inner_product(kernel):
    X, _ = stream()
    Phi = features_of(kernel, X)
    np.testing.assert_allclose(Phi @ Phi.T, gram(kernel, X, 0.8), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("clip", [0.3, 1.0])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_lemma_4_is_the_primal(kernel, clip, loss, rate):
    X, y = stream(seed=3)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    coins = np.random.default_rng(1).random(len(y)) < rate
    given = {"alpha": 0.5, "curvature": 0.2, "clip": clip, "coins": coins}
    expected, g = primal(features_of(kernel, X), y, loss=loss, **given)
    divides = np.abs(g).min() > 1e-6  # the lemma divides by ġ²
    assert divides or loss == "squared_hinge"
    for with_coin in {True, rate < 1.0} if divides else ():
        found = lemma_4(gram(kernel, X, 0.8), y, slope=slopes[loss], with_coin=with_coin, **given)
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_kons_is_follow_the_leader_of_its_own_surrogate():
    """Without projections w_{t+1} minimises α/2|w|² + Σ (g_sᵀw + η/2 (g_sᵀ(w − w_s))²): no
    recursion at all.
    """
    X, y = stream(seed=2, n=60)
    Phi = features_of("quadratic", X)
    predictions, g = primal(Phi, y, alpha=0.7, curvature=0.3, clip=np.inf)
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
    Phi = features("gaussian", X, 0.9, 1)
    kors = Kors(Phi.shape[1], float, seed=0, **sampling)
    reference = ProsNKons(
        Phi.shape[1], float, kors=kors, carry="none", loss="squared", decreasing=False, **shared
    )
    expected = [reference.learn(phi, label) for phi, label in zip(Phi, y, strict=True)]
    assert rows == reference.points
    assert 5 < len(rows) < 115
    assert reference.seen["no coordinate"]
    np.testing.assert_allclose(ours, expected, atol=1e-8)
