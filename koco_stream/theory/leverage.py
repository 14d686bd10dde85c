"""Leverage scores and effective dimensions of a kernel matrix, and Lemma 3 of the ICML paper."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, eigvalsh, solve_triangular

from koco_stream.errors import WrongInput
from koco_stream.types import Array


def factor(K: Array, ridge: float) -> Array:
    """The lower Cholesky factor L (n, n) with LLᵀ = K + ridge·I.

    Raises `WrongInput` for a ridge that is not positive, or a K that is not a kernel matrix.
    """
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
        raise WrongInput(
            f"K + {ridge:g} I is not positive definite: K is not a kernel matrix, or the ridge is"
            " smaller than its rounding error"
        ) from None


def eigenvalues(K: Array, ridge: float) -> Array:
    """The eigenvalues (n,) of K in increasing order, negative ones (rounding) set to 0.

    Raises `WrongInput` for a ridge that is not positive.
    """
    if not ridge > 0.0:
        raise WrongInput(f"the ridge must be positive, not {ridge!r}")
    return np.maximum(eigvalsh(np.asarray(K, np.float64)), 0.0)


def ridge_leverage_scores(K: Array, ridge: float) -> Array:
    """τ_{n,i} = e_iᵀK(K + ridge·I)⁻¹e_i of every row given all rows (ICML, equation 2).

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    ridge : float
        Above 0.

    Returns
    -------
    ndarray of shape (n,)
        Within [0, 1]. They are computed as 1 − ridge·‖L⁻¹e_i‖², with an absolute error of about
        1e-16 ‖K‖/ridge.

    Raises
    ------
    WrongInput
        As `online_leverage_scores` does.
    """
    L = factor(K, ridge)
    inverse = solve_triangular(L, np.eye(len(L)), lower=True)
    return np.clip(1.0 - ridge * np.square(inverse).sum(axis=0), 0.0, 1.0)


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
    values = eigenvalues(K, ridge)
    return float((values / (values + ridge)).sum())


def _pivots(K: Array, ridge: float) -> Array:
    """The pivots (n,) of K + ridge·I: what earlier rows do not explain of each row, plus the ridge.

    They are at least the ridge, except for rounding.
    """
    return np.maximum(np.square(np.diag(factor(K, ridge))), ridge)


def online_leverage_scores(K: Array, ridge: float) -> Array:
    """τ_{t,t} of every row given the rows up to it, from one Cholesky factor in n³/3.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    ridge : float
        Above 0.

    Returns
    -------
    ndarray of shape (n,)
        Within [0, 1).

    Raises
    ------
    WrongInput
        For a ridge that is not positive, or a matrix that is not square or not positive
        semidefinite.

    Notes
    -----
    The pivot p_t = L_tt² of K + ridge·I is ridge·(1 + φ_tᵀA_{t−1}⁻¹φ_t), so τ_{t,t} = 1 − ridge/p_t
    (Sherman–Morrison).
    """
    pivots = _pivots(K, ridge)
    return (pivots - ridge) / pivots


def online_effective_dimension(K: Array, ridge: float) -> float:
    """d_onl(ridge) = Σ τ_{t,t} (ICML, Lemma 3).

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    ridge : float
        Above 0.

    Returns
    -------
    float
        d_onl. It depends on the order of the rows, and does not grow with K: see `Lemma3`.

    Raises
    ------
    WrongInput
        As `online_leverage_scores` does.
    """
    return float(online_leverage_scores(K, ridge).sum())


def log_det(K: Array, ridge: float) -> float:
    """log det(K/ridge + I).

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    ridge : float
        Above 0.

    Returns
    -------
    float
        The sum of log(p_t/ridge) over the pivots of `online_leverage_scores`.

    Raises
    ------
    WrongInput
        As `online_leverage_scores` does.
    """
    return float(np.log(_pivots(K, ridge) / ridge).sum())


class Lemma3(NamedTuple):
    """Lemma 3 of ICML, in which each number is at most the next, and the poster's last term.

    Attributes
    ----------
    d_onl : float
        The online effective dimension.
    log_det : float
        log det(K/α + I).
    sharper : float
        d_eff·(1 + α/‖K‖)·log(‖K‖/α + 1), because (1 + 1/x)·log(1 + x) grows with x
        (docs/errata.md, K12).
    bound : float
        d_eff·(1 + log(‖K‖/α + 1)), as the paper has it.
    poster_bound : float
        2 d_eff log(T/α), the poster's Proposition 2. It is above log det where T/α ≥ 2.4 and
        k(x, x) ≤ 1, and negative for α > T (docs/errata.md, P5).

    Notes
    -----
    d_onl itself is not monotone in K: rescaling rows can raise it. A bound on that of a rescaled
    kernel has to pass through `log_det` (docs/errata.md, K11).
    """

    d_onl: float
    log_det: float
    sharper: float
    bound: float
    poster_bound: float


def lemma_3(K: Array, ridge: float) -> Lemma3:
    """Lemma 3's chain, as numbers.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    ridge : float
        Above 0.

    Returns
    -------
    Lemma3
        The numbers, with α the ridge.

    Raises
    ------
    WrongInput
        As `online_leverage_scores` does.
    """
    pivots, values = _pivots(K, ridge), eigenvalues(K, ridge)
    d_eff, x = float((values / (values + ridge)).sum()), float(values[-1]) / ridge
    return Lemma3(
        d_onl=float(((pivots - ridge) / pivots).sum()),
        log_det=float(np.log(pivots / ridge).sum()),
        sharper=d_eff * (1.0 + 1.0 / x) * math.log1p(x) if x > 0.0 else 0.0,
        bound=d_eff * (1.0 + math.log1p(x)),
        poster_bound=2.0 * d_eff * math.log(len(values) / ridge),
    )


def projection_error(K: Array, chosen: Array) -> float:
    """‖K − K_I K_II⁺ K_Iᵀ‖: what a dictionary's span misses of the rows.

    It is the largest eigenvalue of Φᵀ(P − P_I)Φ. Point 1 of the poster's Proposition 3 bounds it
    (`proposition_3_error`).

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    chosen : ndarray
        The dictionary's rows: a mask (n,), or positions in K.

    Returns
    -------
    float
        The error. Directions of K_II whose eigenvalue is rounding count as missed.
    """
    K = np.asarray(K, np.float64)
    columns = K[:, chosen]
    values, vectors = eigh(columns[chosen])
    kept = values > len(values) * np.finfo(np.float64).eps * float(values.max(initial=0.0))
    explained = columns @ (vectors[:, kept] / np.sqrt(values[kept]))
    last = len(K) - 1
    return max(float(eigvalsh(K - explained @ explained.T, subset_by_index=(last, last))[0]), 0.0)
