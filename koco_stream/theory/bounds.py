"""The theorems that bound the regret of KONS, ONS and FD-SON, what stands in them, and the best
function in hindsight, by kernel ridge regression.

A_t of SON is αI + Σ (σ_s + η_s) g_s g_sᵀ, so the learners' parameter `curvature` is σ + η. A sketch
is updated with the rows ĝ_t = √(σ_t + η_t)·g_t, which form G_T. The paper has no theorem on Oja's
sketch (docs/errata.md, S18).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh
from scipy.sparse import issparse

from koco_stream.errors import WrongInput
from koco_stream.types import Array


def theorem_1_curved(
    *, alpha: float, w_norm2: float, d_eff: float, rounds: int, curvature: float, lipschitz: float
) -> float:
    """The bound on the regret of KONS for η_t = σ > 0 (ICML, Theorem 1, second form).

    α‖w‖² + d_eff (1 + log(1 + σL²T/α))/σ, which Lemma 3 gives. The print has 2 log(2σL²T), which
    needs an α that is not tiny: α ≥ e/(3σL²T) is enough where σL²T ≥ 2 (docs/errata.md, K10).

    Parameters
    ----------
    alpha, w_norm2, curvature, lipschitz : float
        α, ‖w‖², σ and L.
    d_eff : float
        d_eff(α/(σL²)) of the kernel.
    rounds : int
        T.

    Returns
    -------
    float
        The bound on the regret against w.
    """
    logarithm = 1.0 + math.log1p(curvature * lipschitz**2 * rounds / alpha)
    return alpha * w_norm2 + d_eff * logarithm / curvature


def effective_dimension(K: Array, ridge: float) -> float:
    """d_eff(ridge) = tr K(K + ridge·I)⁻¹ (ICML, equation 3), from the eigenvalues.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    ridge : float
        Above 0.

    Returns
    -------
    float
        d_eff.

    Raises
    ------
    WrongInput
        For a ridge that is not positive.
    """
    if not ridge > 0.0:
        raise WrongInput(f"the ridge must be positive, not {ridge!r}")
    values = np.maximum(eigvalsh(np.asarray(K, np.float64)), 0.0)  # below 0 by rounding
    return float((values / (values + ridge)).sum())


def son_theorem_2(
    *,
    alpha: float,
    w_norm2: float,
    n_features: int,
    gradient_norms2: float,
    step_sizes: Array,
    curvature: float,
    clip: float,
    lipschitz: float,
) -> float:
    """The bound on the regret of the online Newton step without a sketch (SON, Theorem 2).

    ½α‖w‖² + 2(CL)² Σ η_t + d/(2(σ + η_T)) ln(1 + (σ + η_T) Σ‖g_t‖²/(dα)).

    Parameters
    ----------
    alpha, w_norm2, clip, lipschitz : float
        α, ‖w‖², C and L.
    n_features : int
        d. Any number from the rank of the gradients on may stand for it.
    gradient_norms2 : float
        Σ‖g_t‖².
    step_sizes : ndarray of shape (T,)
        η_t, which must not increase. Equation 3 is this for η = 0.
    curvature : float
        σ ≤ σ_t.

    Returns
    -------
    float
        The bound on the regret against w.

    Raises
    ------
    WrongInput
        For σ + η_T = 0, or steps that increase.
    """
    least = _least(step_sizes, curvature)
    logarithm = math.log1p(least * gradient_norms2 / (n_features * alpha))
    return _first_terms(alpha, w_norm2, step_sizes, clip, lipschitz) + n_features * logarithm / (
        2.0 * least
    )


def son_theorem_3(
    *,
    alpha: float,
    w_norm2: float,
    sketch_size: int,
    k: int,
    omega_k: float,
    sketch_trace: float,
    step_sizes: Array,
    curvature: float,
    clip: float,
    lipschitz: float,
) -> float:
    """The bound on the regret of `FDSON` for one k (SON, Theorem 3).

    ½α‖w‖² + 2(CL)² Σ η_t + 2m/(2(σ + η_T)) ln(1 + tr(SᵀS)/(2mα))
    + (m + 1)Ω_k/(2(m + 1 − k)(σ + η_T)α). The print has m for both m + 1 and 2m: its Algorithm 2
    keeps m − 1 rows, and `FDSON` m and a buffer of m more (docs/errata.md, S17).

    Parameters
    ----------
    alpha, w_norm2, clip, lipschitz : float
        α, ‖w‖², C and L.
    sketch_size : int
        m.
    k : int
        From 0 to m.
    omega_k : float
        Ω_k = Σ_{i>k} λ_i(G_TᵀG_T), what no k directions hold.
    sketch_trace : float
        tr(S_TᵀS_T), or anything above it as tr(G_TᵀG_T) is.
    step_sizes, curvature
        As for `son_theorem_2`.

    Returns
    -------
    float
        The bound on the regret against w.

    Raises
    ------
    WrongInput
        For a k out of its range, and as `son_theorem_2` does.
    """
    rows, rank = sketch_size + 1, 2 * sketch_size
    if not 0 <= k < rows:
        raise WrongInput(f"k must be from 0 to {rows - 1}, not {k}")
    least = _least(step_sizes, curvature)
    sketched = rank * math.log1p(sketch_trace / (rank * alpha))
    lost = rows * omega_k / ((rows - k) * alpha)
    return _first_terms(alpha, w_norm2, step_sizes, clip, lipschitz) + (sketched + lost) / (
        2.0 * least
    )


def spectrum(gradients_to_sketch: Any) -> Array:
    """The eigenvalues of G_TᵀG_T.

    Parameters
    ----------
    gradients_to_sketch : ndarray or scipy sparse matrix of shape (T, d)
        G_T.

    Returns
    -------
    ndarray of shape (min(T, d),)
        The largest first. The others of d are 0.
    """
    G = gradients_to_sketch
    gram = G.T @ G if G.shape[1] <= G.shape[0] else G @ G.T
    dense = gram.toarray() if issparse(gram) else np.asarray(gram, np.float64)
    return np.maximum(eigvalsh(dense), 0.0)[::-1]


def _first_terms(
    alpha: float, w_norm2: float, step_sizes: Array, clip: float, lipschitz: float
) -> float:
    """½α‖w‖² + 2(CL)² Σ η_t, the first terms of the SON bounds."""
    return 0.5 * alpha * w_norm2 + 2.0 * (clip * lipschitz) ** 2 * float(np.sum(step_sizes))


def _least(step_sizes: Array, curvature: float) -> float:
    """σ + η_T, the smallest coefficient.

    Raises `WrongInput` if it is 0 or the step sizes increase.
    """
    least = curvature + float(step_sizes[-1])
    if not least > 0.0 or (np.diff(step_sizes) > 0.0).any():
        raise WrongInput("η_t must not increase, and σ + η_T must be above 0")
    return least


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
        For a ridge that is not positive, or a K that is not a kernel matrix.
    """
    if not alpha > 0.0:
        raise WrongInput(f"the ridge must be positive, not {alpha!r}")
    labels = np.asarray(y, np.float64)
    try:
        a = cho_solve(cho_factor(K + alpha * np.eye(len(labels)), lower=True), labels)
    except LinAlgError:
        raise WrongInput(
            f"K + {alpha:g} I is not positive definite: K is not a kernel matrix, or the ridge is"
            " smaller than its rounding error"
        ) from None
    predictions = labels - alpha * a
    return Hindsight(a, predictions, labels, float(a @ predictions))
