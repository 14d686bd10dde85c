"""Proposition 3 of the poster: what the span of KORS's dictionary misses of the rows, in every
round looked at.
"""

import numpy as np
import pytest

from koco_stream import KORS
from koco_stream.theory import projection_error, proposition_3_error, theorem_2_beta
from tests.oracles.kernel import gram


def test_projection_error__is_that_of_the_orthogonal_projection():
    phi = np.random.default_rng(0).standard_normal((30, 12))
    chosen = np.arange(30) % 6 == 0
    basis, _ = np.linalg.qr(phi[chosen].T)
    missed = phi - phi @ basis @ basis.T
    assert projection_error(phi @ phi.T, chosen) == pytest.approx(np.linalg.norm(missed, 2) ** 2)
    assert projection_error(phi @ phi.T, np.flatnonzero(chosen)) == projection_error(
        phi @ phi.T, chosen
    )
    assert projection_error(phi @ phi.T, np.zeros(30, bool)) == pytest.approx(
        np.linalg.norm(phi, 2) ** 2
    )
    assert projection_error(phi @ phi.T, np.ones(30, bool)) == pytest.approx(0.0, abs=1e-10)
    twice = np.vstack([phi, phi[:6]])  # repeated points add nothing to the span
    chosen = np.r_[chosen, np.ones(6, bool)]
    assert projection_error(twice @ twice.T, chosen) < np.linalg.norm(phi, 2) ** 2


def test_proposition_3_error__numbers():
    assert proposition_3_error(epsilon=0.5, ridge=3.0) == 3.0
    assert proposition_3_error(epsilon=0.9, ridge=1.0) == pytest.approx(9.0)
    assert np.isinf(proposition_3_error(epsilon=1.0, ridge=1.0))


@pytest.mark.parametrize("estimate", ["icml", "poster"])
def test_kors__with_the_theorem_s_beta_misses_no_more_than_proposition_3_allows(estimate):
    T, delta, ridge, streams, looks, violated, taken = 600, 0.1, 4.0, 10, (30, 100, 600), 0, 0
    for seed in range(streams):
        epsilon = (0.5, 0.9)[seed % 2]
        X = np.random.default_rng(seed).standard_normal((T, 2))
        beta = theorem_2_beta(T, delta, epsilon)
        model = KORS(
            ridge,
            kernel="gaussian",
            bandwidth=2.0,
            beta=beta,
            epsilon=epsilon,
            estimate=estimate,
            seed=seed,
        )
        chosen = model.record(X).column("included").to_numpy().astype(bool)
        K, allowed = gram("gaussian", X, X, 2.0), proposition_3_error(epsilon=epsilon, ridge=ridge)
        violated += any(projection_error(K[:t, :t], chosen[:t]) > allowed for t in looks)
        taken += int(chosen.sum())
    print(
        f"{estimate}: {violated} of {streams} streams violate it; {taken / streams:.0f} of {T} rows"
        " taken"
    )
    assert violated <= delta * streams
    assert taken < 0.95 * streams * T  # else there is nothing to miss
