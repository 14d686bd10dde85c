"""Synthetic tables, generated as a whole.

Every product is summed in a fixed order, so a seed always gives the same bytes.
"""

import numpy as np

from koco_stream.numerics.linear_algebra import gram_schmidt, product
from storage.sources.source import Piece, dense_piece


def ill_conditioned(
    condition_number: float = 10.0, data_seed: int = 1, n_rows: int = 10_000, n_features: int = 100
) -> Piece:
    """Synthetic data of section 5.1 of Luo et al. (2016), not scaled (docs/errata.md, S8 and S11).

    Parameters
    ----------
    condition_number : float
        Largest eigenvalue of the features' covariance; the smallest is 1.
    data_seed : int
        Random seed.
    n_rows, n_features : int
        Size of the dataset.

    Notes
    -----
    X = Z diag(λ)^½ Vᵀ with Z Gaussian and V a random orthonormal basis. λ is 1 except for its last
    ten entries, which grow linearly to `condition_number`. The labels are sign(θᵀz), with z the row
    of Z and θ Gaussian; they do not depend on the condition number.
    """
    draw = np.random.default_rng([data_seed, 0x11])
    Z = draw.standard_normal((n_rows, n_features))
    V = draw.standard_normal((n_features, n_features))
    theta = draw.standard_normal((n_features, 1))
    for _ in range(2):
        gram_schmidt(V, n_features, np.empty(n_features))
    steep = min(10, n_features)
    spectrum = np.ones(n_features)
    spectrum[n_features - steep :] += (condition_number - 1.0) * np.arange(1, steep + 1) / steep
    X, scores = np.empty((n_rows, n_features)), np.empty((n_rows, 1))
    product(Z * np.sqrt(spectrum), np.ascontiguousarray(V.T), X)
    product(Z, theta, scores)
    return dense_piece(np.where(scores[:, 0] >= 0, 1.0, -1.0), X)


def adversary(clip: float = 1.0, n_rows: int = 10_000, n_features: int = 1) -> Piece:
    """Adversary of section 6 of Calandriello et al. (ICML 2017).

    Parameters
    ----------
    clip : float
        The paper's C, the largest absolute label.
    n_rows, n_features : int
        Size of the dataset.

    Notes
    -----
    Every round has the same unit vector x, whose entries are 1/√n_features; the label is −C in odd
    rounds and +C in even ones.

    For the squared loss, σ = η = 1/(8C²), k(x, x) = 1, T rounds and the ridge α:

    - the best weight in hindsight is 0 for an even T, with the loss TC²; for an odd T it predicts
      −C/T, with the loss TC² − C²/T;
    - τ_{t,t}(α) = 1/(t + α), d_onl = Σ 1/(t + α), d_eff = T/(T + α), log det(K/α + I) = log(1 +
      T/α);
    - R_D = 0, and R_G = Σ ġ_t²/(α + σ Σ_{s≤t} ġ_s²) ≤ 8C² log(1 + 2T/α), because |ġ| ≤ 4C. The
      printed middle term, with C² for ġ², is not a bound: ġ_1² is 4C² (docs/errata.md, K15).
    """
    X = np.full((n_rows, n_features), 1.0 / np.sqrt(n_features))
    return dense_piece(np.where(np.arange(n_rows) % 2 == 0, -clip, clip), X)


def slice_like(
    n_rows: int = 53_500, n_features: int = 385, data_seed: int = 1, n_factors: int = 24
) -> Piece:
    """Synthetic table of the size of the poster's slice dataset, on which dictionaries grow large.

    It is not that dataset, and losses on it are not comparable.

    Parameters
    ----------
    n_rows, n_features : int
        Size of the dataset.
    data_seed : int
        Random seed.
    n_factors : int
        Number of hidden uniform variables per row. The features and the label, all in [0, 1], are
        smooth functions of them.
    """
    draw = np.random.default_rng([data_seed, 0x51])
    hidden = draw.random((n_rows, n_factors))
    weights, direction = (
        draw.standard_normal((n_factors, n_features)),
        draw.standard_normal((n_factors, 1)),
    )
    X, score = np.empty((n_rows, n_features)), np.empty((n_rows, 1))
    product(hidden - 0.5, weights, X)
    product(hidden - 0.5, direction, score)
    return dense_piece(
        0.5 + 0.5 * score[:, 0] / (1.0 + np.abs(score[:, 0])), 0.5 + 0.5 * X / (1.0 + np.abs(X))
    )
