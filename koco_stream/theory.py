"""What the papers promise, as numbers: leverage scores, effective dimensions, the terms of a run's regret, and the bounds.

Sources: Calandriello, Lazaric, Valko, "Second-Order Kernel Online Convex Optimization with Adaptive Sketching" (ICML 2017, "ICML" below),
and their poster "Efficient second-order online kernel learning with adaptive embedding" (NIPS 2017, "the poster"). Letters: T rounds, K
(n, n) the kernel matrix of the rows in order, α a ridge, ġ_t = ℓ'_t(ŷ_t) the slopes, η_t the coefficient of g_t g_tᵀ in A_t, σ the losses'
curvature (`koco_stream.losses`), L a bound on |ġ|, C the clip. K̄ = DKD with D = diag(ġ_t √η_t) is the rescaled matrix.

The bounds are for kernels with k(x, x) ≤ 1 and for a w with |f_w(x_t)| ≤ C on all rows. Matrices are held whole: for n of a few thousand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, eigvalsh, solve_triangular

from koco_stream.errors import WrongInput
from koco_stream.linalg import Array

# Leverage scores and dimensions ------------------------------------------------------------------------------------


def _factor(K: Array, ridge: float) -> Array:
    """L (n, n), lower, with LLᵀ = K + ridge·I. Raises `WrongInput` for a ridge that is not positive, or a K that is no kernel matrix."""
    K = np.asarray(K, np.float64)
    if not ridge > 0.0:
        raise WrongInput(f"the ridge must be positive, not {ridge!r}")
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise WrongInput(f"a kernel matrix is square, not of shape {K.shape}")
    shifted = K.copy()
    shifted[np.diag_indices_from(shifted)] += ridge
    try:
        return cholesky(shifted, lower=True, overwrite_a=True)
    except LinAlgError:
        raise WrongInput(f"K + {ridge:g} I is not positive definite: K is no kernel matrix, or the ridge is below its rounding") from None


def _eigenvalues(K: Array, ridge: float) -> Array:
    """The eigenvalues (n,) of K in increasing order, those below 0 (rounding) set to 0. Raises as `_factor` does for the ridge."""
    if not ridge > 0.0:
        raise WrongInput(f"the ridge must be positive, not {ridge!r}")
    return np.maximum(eigvalsh(np.asarray(K, np.float64)), 0.0)


def ridge_leverage_scores(K: Array, ridge: float) -> Array:
    """τ_{n,i} = e_iᵀK(K + ridge·I)⁻¹e_i of every row given all rows, (n,) in [0, 1] (ICML, equation 2).

    Computed as 1 − ridge·‖L⁻¹e_i‖²: the absolute error is about 1e-16 ‖K‖/ridge. Raises as `online_leverage_scores` does.
    """
    L = _factor(K, ridge)
    inverse = solve_triangular(L, np.eye(len(L)), lower=True)
    return np.clip(1.0 - ridge * np.square(inverse).sum(axis=0), 0.0, 1.0)


def effective_dimension(K: Array, ridge: float) -> float:
    """d_eff(ridge) = tr K(K + ridge·I)⁻¹ (ICML, equation 3), from the eigenvalues. Raises `WrongInput` for a ridge that is not positive."""
    values = _eigenvalues(K, ridge)
    return float((values / (values + ridge)).sum())


def _pivots(K: Array, ridge: float) -> Array:
    """(n,): row t's part that the rows before it do not explain, plus the ridge; never below the ridge, but for rounding."""
    return np.maximum(np.square(np.diag(_factor(K, ridge))), ridge)


def online_leverage_scores(K: Array, ridge: float) -> Array:
    """τ_{t,t} of every row given the rows up to it, (n,) in [0, 1), from one Cholesky factor in n³/3.

    The pivot p_t = L_tt² of K + ridge·I is ridge·(1 + φ_tᵀA_{t−1}⁻¹φ_t), so τ_{t,t} = 1 − ridge/p_t (Sherman–Morrison). Raises
    `WrongInput` for a ridge that is not positive, or a matrix that is not square or not positive semidefinite.
    """
    pivots = _pivots(K, ridge)
    return (pivots - ridge) / pivots


def online_effective_dimension(K: Array, ridge: float) -> float:
    """d_onl(ridge) = Σ τ_{t,t} (ICML, Lemma 3). It depends on the order of the rows, and does not grow with K: see `Lemma3`."""
    return float(online_leverage_scores(K, ridge).sum())


def log_det(K: Array, ridge: float) -> float:
    """log det(K/ridge + I), the sum of log(p_t/ridge) over the same pivots."""
    return float(np.log(_pivots(K, ridge) / ridge).sum())


class Lemma3(NamedTuple):
    """Lemma 3 of ICML, each at most the next: `d_onl` ≤ `log_det` ≤ `sharper` ≤ `bound`; and the poster's last term, `poster_bound`.

    `bound`: d_eff·(1 + log(‖K‖/α + 1)). `sharper` (K12): d_eff·(1 + α/‖K‖)·log(‖K‖/α + 1), because (1 + 1/x)·log(1 + x) grows with x.
    `poster_bound`: 2 d_eff log(T/α) (its Proposition 2); above log det where T/α ≥ 2.4 and k(x, x) ≤ 1, and negative for α > T (P5).
    d_onl itself is not monotone in K (rescaling rows can raise it): a bound on a rescaled kernel's has to pass through `log_det` (K11).
    """

    d_onl: float
    log_det: float
    sharper: float
    bound: float
    poster_bound: float


def lemma_3(K: Array, ridge: float) -> Lemma3:
    """Lemma 3's chain for K (n, n), as numbers. Raises as `online_leverage_scores` does."""
    pivots, values = _pivots(K, ridge), _eigenvalues(K, ridge)
    d_eff, x = float((values / (values + ridge)).sum()), float(values[-1]) / ridge
    return Lemma3(
        d_onl=float(((pivots - ridge) / pivots).sum()),
        log_det=float(np.log(pivots / ridge).sum()),
        sharper=d_eff * (1.0 + 1.0 / x) * math.log1p(x) if x > 0.0 else 0.0,
        bound=d_eff * (1.0 + math.log1p(x)),
        poster_bound=2.0 * d_eff * math.log(len(values) / ridge),
    )


# The terms of a recorded run ---------------------------------------------------------------------------------------


def rescaled_kernel(K: Array, slopes: Array, step_sizes: Array) -> Array:
    """K̄ = DKD (n, n), D = diag(ġ_t √η_t); `slopes` and `step_sizes` are (n,)."""
    scale = slopes * np.sqrt(step_sizes)
    return scale[:, None] * K * scale


def gradient_term(K: Array, slopes: Array, step_sizes: Array, alpha: float) -> float:
    """R_G = Σ ġ_t² φ_tᵀA_t⁻¹φ_t of a run (ICML, Proposition 1), for A_t = αI + Σ_{s≤t} η_s g_s g_sᵀ.

    `slopes` (n,) are ġ, `step_sizes` (n,) η; for a sketched run, η_t z_t with the round's coin. Rounds with ġ_t = 0 or η_t = 0 need no
    special case, since φᵀA⁻¹φ is computed and not τ̄/η. Raises as `online_leverage_scores` does.
    """
    scale = slopes * np.sqrt(step_sizes)
    L = _factor(rescaled_kernel(K, slopes, step_sizes), alpha)
    explained = np.square(np.triu(solve_triangular(L, scale[:, None] * K, lower=True), 1)).sum(axis=0)
    before = np.maximum(np.diag(K) - explained, 0.0) / alpha  # φ_tᵀA_{t−1}⁻¹φ_t
    return float((slopes**2 * before / (1.0 + scale**2 * before)).sum())


def curvature_term(predictions: Array, best: Array, slopes: Array, step_sizes: Array, curvature: Array | float) -> float:
    """R_D = Σ (η_t − σ_t) ġ_t² (ŷ_t − f_w(x_t))² (ICML, Proposition 1); `best` (n,) is f_w on the rows, the rest as in `gradient_term`."""
    return float(((step_sizes - curvature) * (slopes * (predictions - best)) ** 2).sum())


def newton_regret_bound(alpha: float, w_norm2: float, R_G: float, R_D: float = 0.0) -> float:
    """½(α‖w‖² + R_G + R_D), above the regret of the online Newton step for every w in the feasible set (docs/errata.md, K10).

    Proposition 1 of ICML prints it without the ½, which Assumption 2's own σ/2 leaves. `R_D` is 0 for η = σ.
    """
    return 0.5 * (alpha * w_norm2 + R_G + R_D)


# The best function in hindsight ------------------------------------------------------------------------------------


class Hindsight(NamedTuple):
    """A function f = Σ a_i k(x_i, ·) on the rows it was made from: `coefficients` a (n,), `predictions` f(x_t) (n,), the `labels` (n,),
    and `norm2` = ‖f‖²."""

    coefficients: Array
    predictions: Array
    labels: Array
    norm2: float

    @property
    def loss(self) -> float:
        """Σ (f(x_t) − y_t)²."""
        return float(((self.predictions - self.labels) ** 2).sum())

    @property
    def largest(self) -> float:
        """max |f(x_t)|."""
        return float(np.abs(self.predictions).max(initial=0.0))

    def scaled_into(self, clip: float) -> Hindsight:
        """The same function, shrunk until |f(x_t)| ≤ `clip` on all rows: feasible, though not the best of the feasible set."""
        factor = clip / self.largest if self.largest > clip else 1.0
        predictions = np.clip(factor * self.predictions, -clip, clip)  # a product may round past the clip
        return Hindsight(factor * self.coefficients, predictions, self.labels, factor * factor * self.norm2)


def best_in_hindsight(K: Array, y: Array, alpha: float) -> Hindsight:
    """argmin_f Σ (f(x_t) − y_t)² + α‖f‖² (kernel ridge regression): a = (K + αI)⁻¹y. Not clipped: see `Hindsight.scaled_into`.

    Raises as `online_leverage_scores` does.
    """
    labels = np.asarray(y, np.float64)
    a = cho_solve((_factor(K, alpha), True), labels)
    predictions = labels - alpha * a
    return Hindsight(a, predictions, labels, float(a @ predictions))


# The theorems ------------------------------------------------------------------------------------------------------


def theorem_1(
    *, alpha: float, w_norm2: float, d_onl: float, step_sizes: Array, curvature: Array | float, clip: float, lipschitz: float
) -> float:
    """Theorem 1 of ICML, first form: α‖w‖² + d_onl/η_T + 4C²L² Σ(η_t − σ), for steps that do not increase.

    `d_onl` is that of the rescaled kernel (K10; the print leaves out its bar); `step_sizes` (T,).
    """
    return float(alpha * w_norm2 + d_onl / step_sizes[-1] + 4.0 * (clip * lipschitz) ** 2 * np.sum(step_sizes - curvature))


def theorem_1_curved(
    *, alpha: float, w_norm2: float, d_eff: float, rounds: int, curvature: float, lipschitz: float, printed: bool = True
) -> float:
    """Theorem 1 of ICML, second form, η_t = σ > 0: α‖w‖² + 2 d_eff log(2σL²T)/σ with d_eff = d_eff(α/(σL²)) of the kernel.

    `printed=False` has 1 + log(1 + σL²T/α) for 2 log(2σL²T), as Lemma 3 gives it: valid for every α, while the print needs an α that is
    not tiny (α ≥ e/(3σL²T) is enough where σL²T ≥ 2; K10).
    """
    s = curvature * lipschitz**2 * rounds
    logarithm = 2.0 * math.log(2.0 * s) if printed else 1.0 + math.log1p(s / alpha)
    return alpha * w_norm2 + d_eff * logarithm / curvature


def theorem_1_flat(
    *, alpha: float, w_norm2: float, d_eff: float, rounds: int, clip: float, lipschitz: float, printed: bool = True
) -> float:
    """Theorem 1 of ICML, third form, σ = 0 and η_t = 1/(LC√t): α‖w‖² + 4LC√T d_eff log(2L²T) with d_eff = d_eff(α/L²) of the kernel.

    `printed=False` is what the first form and Lemma 3 give: α‖w‖² + LC√T (d_eff (1 + log(1 + LT/(Cα))) + 8) with d_eff = d_eff(αC/L). The
    print takes η_1 = 1/(LC) for at most 1, and its 8 into the logarithm, which needs d_eff not much below 1 (K13).
    """
    root = lipschitz * clip * math.sqrt(rounds)
    if printed:
        return alpha * w_norm2 + 4.0 * root * d_eff * math.log(2.0 * lipschitz**2 * rounds)
    return alpha * w_norm2 + root * (d_eff * (1.0 + math.log1p(lipschitz * rounds / (clip * alpha))) + 8.0)


def theorem_2_beta(rounds: int, delta: float, epsilon: float) -> float:
    """The least β for which Theorem 2 of ICML holds with probability 1 − δ: 3 log(T/δ)/ε² (K7)."""
    return 3.0 * math.log(rounds / delta) / epsilon**2


class DictionarySize(NamedTuple):
    """Bounds on the size of KORS's dictionary (ICML, Theorem 2): `corrected` 3ρβ·d_onl, which follows from its point (3); `printed`
    3ρβ·d_onl/ε², in which ε² is counted twice (K9); `printed_last` 6ρ·d_eff·log²(2T/δ)/ε², which does not follow from `corrected`, whose
    β and Lemma 3 give 9ρ·d_eff·log(T/δ)(1 + log(‖K‖/α + 1))/ε²."""

    corrected: float
    printed: float
    printed_last: float


def theorem_2_size(
    *, d_onl: float, d_eff: float, rounds: int, beta: float, epsilon: float, delta: float, estimate: str = "icml"
) -> DictionarySize:
    """The bounds of `DictionarySize`; ρ = (1 + ε)/(1 − ε). With `estimate="poster"`, whose τ̃ is divided by ρ, `corrected` is 3β·d_onl."""
    rho = (1.0 + epsilon) / (1.0 - epsilon) if epsilon < 1.0 else math.inf
    corrected = 3.0 * (1.0 if estimate == "poster" else rho) * beta * d_onl
    return DictionarySize(
        corrected, 3.0 * rho * beta * d_onl / epsilon**2, 6.0 * rho * d_eff * math.log(2.0 * rounds / delta) ** 2 / epsilon**2
    )


def theorem_3(
    *,
    alpha: float,
    w_norm2: float,
    d_eff: float,
    rounds: int,
    curvature: float,
    lipschitz: float,
    sampling_floor: float,
    beta: float,
    smallest_score: float,
    epsilon: float,
    printed: bool = True,
) -> float:
    """Theorem 3 of ICML for Sketched-KONS, η_t = σ: α‖w‖² + 2 d_eff log(2σL²T)/(σ max(γ, β τ̄_min)).

    `sampling_floor` is γ, `smallest_score` τ̄_min, the least τ_{t,t} of the rescaled kernel; `d_eff` as in `theorem_1_curved`.
    `printed=False` keeps what the print drops: the factor 1 − ε of Corollary 1, and that a coin's probability is at most 1 (with
    β τ̄_min > 1 the print would be below KONS's own bound; K14); its logarithm is that of `theorem_1_curved`.
    """
    gradients = theorem_1_curved(
        alpha=alpha, w_norm2=0.0, d_eff=d_eff, rounds=rounds, curvature=curvature, lipschitz=lipschitz, printed=printed
    )
    least = max(sampling_floor, beta * smallest_score)
    return alpha * w_norm2 + gradients / (least if printed else (1.0 - epsilon) * min(least, 1.0))


def poster_epochs(*, d_eff: float, rounds: int, beta: float) -> float:
    """J ≤ 3β·d_eff·log(2T), the poster's bound on the restarts; `d_eff` is at KORS's ridge γ. log(2T) needs γ ≥ 1 and T ≥ 4 (P5)."""
    return 3.0 * beta * d_eff * math.log(2.0 * rounds)


def poster_theorem_1(*, alpha: float, w_norm2: float, d_eff: float, rounds: int, epochs: float, ridge: float) -> float:
    """J(α‖w‖² + d_eff log(T/α)) + γT/α, inside the O(·) of the poster's Theorem 1: to be compared as a ratio only.

    `d_eff` is at α, `epochs` is J, `ridge` γ. The print leaves a bracket open; the last term is
    outside J, since the epochs' rounds add up to T (P6).
    """
    return epochs * (alpha * w_norm2 + d_eff * math.log(rounds / alpha)) + ridge * rounds / alpha


def poster_theorem_2(*, alpha: float, w_norm2: float, d_eff: float, rounds: int, epochs: float, largest_epoch_loss: float) -> float:
    """J(d_eff log T + α max_j L*_j + α‖w‖²), inside the O(·) of the poster's Theorem 2 (squared loss): to be compared as a ratio only.

    `largest_epoch_loss` is max_j L*_j, the least of Σ (f(x_t) − y_t)² + α‖f‖² over an epoch's rows; `d_eff` is at α, `epochs` is J.
    """
    return epochs * (d_eff * math.log(rounds) + alpha * largest_epoch_loss + alpha * w_norm2)
