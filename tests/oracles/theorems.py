"""What the papers on KONS, PROS-N-KONS and sketched online Newton steps say in numbers: leverage
scores, the terms of a regret, and the bounds that no report draws. `koco_stream.theory` has the
others, and the notation.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular


def pivots(K, ridge):
    """What earlier rows do not explain of each row, plus the ridge: L_tt² of K + ridge·I."""
    return np.maximum(np.diag(cholesky(K + ridge * np.eye(len(K)), lower=True)) ** 2, ridge)


def online_effective_dimension(K, ridge):
    """d_onl(ridge) = Σ τ_{t,t} (ICML, Lemma 3), the leverage scores of every row given the rows up
    to it: τ_{t,t} = 1 − ridge/p_t (Sherman–Morrison).
    """
    return (1.0 - ridge / pivots(K, ridge)).sum()


def log_det(K, ridge):
    """log det(K/ridge + I)."""
    return np.log(pivots(K, ridge) / ridge).sum()


def rescaled_kernel(K, slopes, step_sizes):
    """K̄ = DKD with D = diag(ġ_t √η_t)."""
    scale = slopes * np.sqrt(step_sizes)
    return scale[:, None] * K * scale


def gradient_term(K, slopes, step_sizes, alpha):
    """R_G = Σ ġ_t² φ_tᵀA_t⁻¹φ_t with A_t = αI + Σ_{s≤t} η_s g_s g_sᵀ (ICML, Proposition 1)."""
    scale = slopes * np.sqrt(step_sizes)
    L = cholesky(scale[:, None] * K * scale + alpha * np.eye(len(K)), lower=True)
    explained = np.triu(solve_triangular(L, scale[:, None] * K, lower=True), 1) ** 2
    before = np.maximum(np.diag(K) - explained.sum(axis=0), 0.0) / alpha  # φ_tᵀA_{t−1}⁻¹φ_t
    return (slopes**2 * before / (1.0 + scale**2 * before)).sum()


def curvature_term(predictions, best, slopes, step_sizes, curvature):
    """R_D = Σ (η_t − σ_t) ġ_t² (ŷ_t − f_w(x_t))² (ICML, Proposition 1)."""
    return ((step_sizes - curvature) * (slopes * (predictions - best)) ** 2).sum()


def newton_regret_bound(alpha, w_norm2, R_G, R_D=0.0):
    """½(α‖w‖² + R_G + R_D); Proposition 1 prints it without the ½ (docs/errata.md, K10)."""
    return 0.5 * (alpha * w_norm2 + R_G + R_D)


def theorem_1(*, alpha, w_norm2, d_onl, step_sizes, curvature, clip, lipschitz):
    """Theorem 1 of ICML, first form."""
    excess = 4.0 * (clip * lipschitz) ** 2 * np.sum(step_sizes - curvature)
    return alpha * w_norm2 + d_onl / step_sizes[-1] + excess


def theorem_1_curved_as_printed(*, alpha, w_norm2, d_eff, rounds, curvature, lipschitz):
    """Theorem 1 of ICML, second form, for η_t = σ > 0."""
    logarithm = np.log(2.0 * curvature * lipschitz**2 * rounds)
    return alpha * w_norm2 + 2.0 * d_eff * logarithm / curvature


def theorem_2_beta(rounds, delta, epsilon):
    """The least β for which Theorem 2 of ICML holds (docs/errata.md, K7)."""
    return 3.0 * np.log(rounds / delta) / epsilon**2


def theorem_2_size(*, d_onl, beta, epsilon):
    """3ρβ·d_onl, how large Theorem 2 of ICML lets KORS's dictionary become (docs/errata.md, K9)."""
    return 3.0 * (1.0 + epsilon) / (1.0 - epsilon) * beta * d_onl
