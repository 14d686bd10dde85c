"""The theorems of Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016, "SON"), as functions.

Their A_t is αI + Σ (σ_s + η_s) g_s g_sᵀ, so the learners' parameter `curvature` is σ + η. A sketch
is updated with the rows ĝ_t = √(σ_t + η_t)·g_t, which form G_T. Theorem 1 is the lower bound,
Theorem 2 is on the Newton step without a sketch, Theorem 3 on frequent directions. The paper has no
theorem on Oja's sketch (docs/errata.md, S18).
"""

import math
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse import issparse

from koco_stream.errors import WrongInput
from koco_stream.types import Array


def son_theorem_1(*, rounds: int, n_features: int, clip: float, lipschitz: float) -> float:
    """CL√(dT)/2, a regret that every algorithm has on some sequence (SON, Theorem 1).

    `hard_sequence` makes such sequences.

    Parameters
    ----------
    rounds, n_features : int
        T and d.
    clip, lipschitz : float
        C and L.

    Returns
    -------
    float
        The lower bound.

    Raises
    ------
    WrongInput
        For T < d, of which the theorem says nothing.
    """
    if rounds < n_features:
        raise WrongInput(
            f"Theorem 1 needs T ≥ d: there are {rounds} rounds and {n_features} features"
        )
    return 0.5 * clip * lipschitz * math.sqrt(n_features * rounds)


def hard_sequence(rounds: int, n_features: int, seed: int) -> tuple[Array, Array]:
    """Rows and signs on which no algorithm has a small regret on average.

    Parameters
    ----------
    rounds, n_features : int
        T and d.
    seed : int
        Of the signs.

    Returns
    -------
    X : ndarray of shape (T, d)
        The unit vectors in turn, in d blocks of T/d rounds.
    y : ndarray of shape (T,)
        Fair coins, −1 or 1.

    Raises
    ------
    WrongInput
        For T < d.

    Notes
    -----
    With a loss whose slope is −L·y on [−C, C], every algorithm has the mean loss of w = 0, while
    w = C·sign(Σ y) by block gains CL·E|Σ y| ≥ CL√(n/2) in a block of n rounds. As n ≥ T/(2d), the
    mean regret is at least `son_theorem_1` (docs/errata.md, S16). The hinge loss with C ≤ 1 is such
    a loss, with L = 1.
    """
    if rounds < n_features:
        raise WrongInput(
            f"a block for each of {n_features} features needs as many rounds, not {rounds}"
        )
    block = np.arange(rounds) * n_features // rounds
    return np.eye(n_features)[block], np.random.default_rng(seed).choice([-1.0, 1.0], rounds)


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


def omega(gradients_to_sketch: Any, k: int) -> float:
    """Ω_k = Σ_{i>k} λ_i(G_TᵀG_T) of SON's Theorem 3: what no k directions hold.

    Parameters
    ----------
    gradients_to_sketch : ndarray or scipy sparse matrix of shape (T, d)
        G_T.
    k : int
        How many directions.

    Returns
    -------
    float
        Ω_k.

    Raises
    ------
    WrongInput
        For k < 0.
    """
    if k < 0:
        raise WrongInput(f"k counts directions: {k} is below 0")
    return float(spectrum(gradients_to_sketch)[k:].sum())


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
    printed: bool = True,
) -> float:
    """The bound on the regret of FD-SON for one k (SON, Theorem 3).

    ½α‖w‖² + 2(CL)² Σ η_t + m/(2(σ + η_T)) ln(1 + tr(SᵀS)/(mα)) + mΩ_k/(2(m − k)(σ + η_T)α).

    Parameters
    ----------
    alpha, w_norm2, clip, lipschitz : float
        α, ‖w‖², C and L.
    sketch_size : int
        m.
    k : int
        From 0 to m − 1, or to m for the bound that is not printed.
    omega_k : float
        Ω_k, as `omega` gives it.
    sketch_trace : float
        tr(S_TᵀS_T), or anything above it as tr(G_TᵀG_T) is.
    step_sizes, curvature
        As for `son_theorem_2`.
    printed : bool
        True for Algorithm 2, which keeps m − 1 rows. False for `FDSON`, which keeps m rows and a
        buffer of m more: m + 1 for m in the last term, and 2m in the logarithm's
        (docs/errata.md, S17).

    Returns
    -------
    float
        The bound on the regret against w.

    Raises
    ------
    WrongInput
        For a k out of its range, and as `son_theorem_2` does.
    """
    rows, rank = (sketch_size, sketch_size) if printed else (sketch_size + 1, 2 * sketch_size)
    if not 0 <= k < rows:
        raise WrongInput(f"k must be from 0 to {rows - 1}, not {k}")
    least = _least(step_sizes, curvature)
    sketched = rank * math.log1p(sketch_trace / (rank * alpha))
    lost = rows * omega_k / ((rows - k) * alpha)
    return _first_terms(alpha, w_norm2, step_sizes, clip, lipschitz) + (sketched + lost) / (
        2.0 * least
    )


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
