"""The terms of a run's regret (ICML, Proposition 1), and the best function in hindsight."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from koco_stream.theory.leverage import factor
from koco_stream.types import Array


def rescaled_kernel(K: Array, slopes: Array, step_sizes: Array) -> Array:
    """K̄ = DKD with D = diag(ġ_t √η_t).

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    slopes, step_sizes : ndarray of shape (n,)
        ġ and η.

    Returns
    -------
    ndarray of shape (n, n)
        K̄.
    """
    scale = slopes * np.sqrt(step_sizes)
    return scale[:, None] * K * scale


def gradient_term(K: Array, slopes: Array, step_sizes: Array, alpha: float) -> float:
    """R_G = Σ ġ_t² φ_tᵀA_t⁻¹φ_t of a run (ICML, Proposition 1).

    A_t is αI + Σ_{s≤t} η_s g_s g_sᵀ.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix of the run's rows, in order.
    slopes : ndarray of shape (n,)
        ġ.
    step_sizes : ndarray of shape (n,)
        η; for a sketched run, η_t z_t with the round's coin.
    alpha : float
        α.

    Returns
    -------
    float
        R_G. Rounds with ġ_t = 0 or η_t = 0 need no special case, since φᵀA⁻¹φ is computed and not
        τ̄/η.

    Raises
    ------
    WrongInput
        As `online_leverage_scores` does.
    """
    scale = slopes * np.sqrt(step_sizes)
    L = factor(rescaled_kernel(K, slopes, step_sizes), alpha)
    explained = np.square(np.triu(solve_triangular(L, scale[:, None] * K, lower=True), 1)).sum(
        axis=0
    )
    before = np.maximum(np.diag(K) - explained, 0.0) / alpha  # φ_tᵀA_{t−1}⁻¹φ_t
    return float((slopes**2 * before / (1.0 + scale**2 * before)).sum())


def curvature_term(
    predictions: Array, best: Array, slopes: Array, step_sizes: Array, curvature: Array | float
) -> float:
    """R_D = Σ (η_t − σ_t) ġ_t² (ŷ_t − f_w(x_t))² (ICML, Proposition 1).

    Parameters
    ----------
    predictions, best : ndarray of shape (n,)
        ŷ, and f_w on the rows.
    slopes, step_sizes : ndarray of shape (n,)
        ġ and η.
    curvature : float or ndarray of shape (n,)
        σ.

    Returns
    -------
    float
        R_D.
    """
    return float(((step_sizes - curvature) * (slopes * (predictions - best)) ** 2).sum())


def newton_regret_bound(alpha: float, w_norm2: float, R_G: float, R_D: float = 0.0) -> float:
    """½(α‖w‖² + R_G + R_D), above the regret of the online Newton step for every feasible w.

    Parameters
    ----------
    alpha, w_norm2 : float
        α and ‖w‖².
    R_G, R_D : float
        What `gradient_term` and `curvature_term` give; R_D is 0 for η = σ.

    Returns
    -------
    float
        The bound on the regret against w.

    Notes
    -----
    Proposition 1 of ICML prints it without the ½, which Assumption 2's own σ/2 leaves
    (docs/errata.md, K10).
    """
    return 0.5 * (alpha * w_norm2 + R_G + R_D)


class Hindsight(NamedTuple):
    """A function f = Σ a_i k(x_i, ·) on the rows it was made from.

    Attributes
    ----------
    coefficients : ndarray of shape (n,)
        a.
    predictions, labels : ndarray of shape (n,)
        f(x_t) and y_t.
    norm2 : float
        ‖f‖².
    """

    coefficients: Array
    predictions: Array
    labels: Array
    norm2: float

    @property
    def loss(self) -> float:
        """The sum of squared errors, Σ (f(x_t) − y_t)²."""
        return float(((self.predictions - self.labels) ** 2).sum())

    @property
    def largest(self) -> float:
        """The largest prediction, max |f(x_t)|."""
        return float(np.abs(self.predictions).max(initial=0.0))

    def scaled_into(self, clip: float) -> "Hindsight":
        """The function multiplied by a factor such that |f(x_t)| ≤ `clip` on all rows.

        It is feasible, but not the best feasible function.
        """
        factor = clip / self.largest if self.largest > clip else 1.0
        # Clipped, because a product may round to a value beyond the clip.
        predictions = np.clip(factor * self.predictions, -clip, clip)
        return Hindsight(
            factor * self.coefficients, predictions, self.labels, factor * factor * self.norm2
        )


def best_in_hindsight(K: Array, y: Array, alpha: float) -> Hindsight:
    """Kernel ridge regression: argmin_f Σ (f(x_t) − y_t)² + α‖f‖², a = (K + αI)⁻¹y.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    y : ndarray of shape (n,)
        The labels.
    alpha : float
        α.

    Returns
    -------
    Hindsight
        The function. Its predictions are not clipped: see `Hindsight.scaled_into`.

    Raises
    ------
    WrongInput
        As `online_leverage_scores` does.
    """
    labels = np.asarray(y, np.float64)
    a = cho_solve((factor(K, alpha), True), labels)
    predictions = labels - alpha * a
    return Hindsight(a, predictions, labels, float(a @ predictions))
