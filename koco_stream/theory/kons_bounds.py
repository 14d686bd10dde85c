"""The theorems of the ICML 2017 paper on KONS, KORS and Sketched-KONS, as functions."""

import math
from typing import NamedTuple

import numpy as np

from koco_stream.types import Array


def theorem_1(
    *,
    alpha: float,
    w_norm2: float,
    d_onl: float,
    step_sizes: Array,
    curvature: Array | float,
    clip: float,
    lipschitz: float,
) -> float:
    """Theorem 1 of ICML, first form: α‖w‖² + d_onl/η_T + 4C²L² Σ(η_t − σ).

    Parameters
    ----------
    alpha, w_norm2, clip, lipschitz : float
        α, ‖w‖², C and L.
    d_onl : float
        The online effective dimension of the rescaled kernel. The print leaves out its bar
        (docs/errata.md, K10).
    step_sizes : ndarray of shape (T,)
        η_t, which must not increase.
    curvature : float or ndarray of shape (T,)
        σ.

    Returns
    -------
    float
        The bound on the regret against w.
    """
    return float(
        alpha * w_norm2
        + d_onl / step_sizes[-1]
        + 4.0 * (clip * lipschitz) ** 2 * np.sum(step_sizes - curvature)
    )


def theorem_1_curved(
    *,
    alpha: float,
    w_norm2: float,
    d_eff: float,
    rounds: int,
    curvature: float,
    lipschitz: float,
    printed: bool = True,
) -> float:
    """Theorem 1 of ICML, second form, for η_t = σ > 0: α‖w‖² + 2 d_eff log(2σL²T)/σ.

    Parameters
    ----------
    alpha, w_norm2, curvature, lipschitz : float
        α, ‖w‖², σ and L.
    d_eff : float
        d_eff(α/(σL²)) of the kernel.
    rounds : int
        T.
    printed : bool
        False puts 1 + log(1 + σL²T/α), which Lemma 3 gives, instead of 2 log(2σL²T).

    Returns
    -------
    float
        The bound on the regret against w.

    Notes
    -----
    The form that is not printed is valid for every α. The print needs an α that is not tiny:
    α ≥ e/(3σL²T) is enough where σL²T ≥ 2 (docs/errata.md, K10).
    """
    s = curvature * lipschitz**2 * rounds
    logarithm = 2.0 * math.log(2.0 * s) if printed else 1.0 + math.log1p(s / alpha)
    return alpha * w_norm2 + d_eff * logarithm / curvature


def theorem_1_flat(
    *,
    alpha: float,
    w_norm2: float,
    d_eff: float,
    rounds: int,
    clip: float,
    lipschitz: float,
    printed: bool = True,
) -> float:
    """Theorem 1 of ICML, third form, for σ = 0 and η_t = 1/(LC√t): α‖w‖² + 4LC√T d_eff log(2L²T).

    Parameters
    ----------
    alpha, w_norm2, clip, lipschitz : float
        α, ‖w‖², C and L.
    d_eff : float
        d_eff(α/L²) of the kernel, or d_eff(αC/L) for the form that is not printed.
    rounds : int
        T.
    printed : bool
        False gives what the first form and Lemma 3 give: α‖w‖² + LC√T (d_eff (1 + log(1 +
        LT/(Cα))) + 8).

    Returns
    -------
    float
        The bound on the regret against w.

    Notes
    -----
    The print takes η_1 = 1/(LC) for at most 1. It takes its 8 into the logarithm, which needs a
    d_eff not much below 1 (docs/errata.md, K13).
    """
    root = lipschitz * clip * math.sqrt(rounds)
    if printed:
        return alpha * w_norm2 + 4.0 * root * d_eff * math.log(2.0 * lipschitz**2 * rounds)
    return alpha * w_norm2 + root * (
        d_eff * (1.0 + math.log1p(lipschitz * rounds / (clip * alpha))) + 8.0
    )


def theorem_2_beta(rounds: int, delta: float, epsilon: float) -> float:
    """The least β for which Theorem 2 of ICML holds: 3 log(T/δ)/ε² (docs/errata.md, K7).

    Parameters
    ----------
    rounds : int
        T.
    delta : float
        δ: the theorem holds with probability 1 − δ.
    epsilon : float
        ε, the accuracy of KORS's estimate.

    Returns
    -------
    float
        β.
    """
    return 3.0 * math.log(rounds / delta) / epsilon**2


class DictionarySize(NamedTuple):
    """Bounds on the size of KORS's dictionary (ICML, Theorem 2).

    Attributes
    ----------
    corrected : float
        3ρβ·d_onl, which follows from the theorem's point (3).
    printed : float
        3ρβ·d_onl/ε², in which ε² is counted twice (docs/errata.md, K9).
    printed_last : float
        6ρ·d_eff·log²(2T/δ)/ε². It does not follow from `corrected`, whose β and Lemma 3 give
        9ρ·d_eff·log(T/δ)(1 + log(‖K‖/α + 1))/ε².
    """

    corrected: float
    printed: float
    printed_last: float


def theorem_2_size(
    *,
    d_onl: float,
    d_eff: float,
    rounds: int,
    beta: float,
    epsilon: float,
    delta: float,
    estimate: str = "icml",
) -> DictionarySize:
    """How large Theorem 2 of ICML lets KORS's dictionary become; ρ = (1 + ε)/(1 − ε).

    Parameters
    ----------
    d_onl, d_eff : float
        The online effective dimension, and the effective dimension.
    rounds : int
        T.
    beta, epsilon, delta : float
        β, ε and δ.
    estimate : {"icml", "poster"}
        KORS's estimate. The poster's is ρ times smaller, so that `corrected` is 3β·d_onl.

    Returns
    -------
    DictionarySize
        The bounds.
    """
    rho = (1.0 + epsilon) / (1.0 - epsilon) if epsilon < 1.0 else math.inf
    corrected = 3.0 * (1.0 if estimate == "poster" else rho) * beta * d_onl
    return DictionarySize(
        corrected,
        3.0 * rho * beta * d_onl / epsilon**2,
        6.0 * rho * d_eff * math.log(2.0 * rounds / delta) ** 2 / epsilon**2,
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
    """Theorem 3 of ICML, for Sketched-KONS with η_t = σ.

    α‖w‖² + 2 d_eff log(2σL²T)/(σ max(γ, β τ̄_min)).

    Parameters
    ----------
    alpha, w_norm2, curvature, lipschitz : float
        α, ‖w‖², σ and L.
    d_eff : float
        As for `theorem_1_curved`.
    rounds : int
        T.
    sampling_floor : float
        γ, the least probability of a coin.
    beta, epsilon : float
        β and ε.
    smallest_score : float
        τ̄_min, the least online leverage score of the rescaled kernel.
    printed : bool
        False keeps what the print drops: the factor 1 − ε of Corollary 1, and that a probability is
        at most 1. Its logarithm is that of `theorem_1_curved`.

    Returns
    -------
    float
        The bound on the regret against w.

    Notes
    -----
    With β τ̄_min > 1 the print is below KONS's own bound (docs/errata.md, K14).
    """
    gradients = theorem_1_curved(
        alpha=alpha,
        w_norm2=0.0,
        d_eff=d_eff,
        rounds=rounds,
        curvature=curvature,
        lipschitz=lipschitz,
        printed=printed,
    )
    least = max(sampling_floor, beta * smallest_score)
    return alpha * w_norm2 + gradients / (least if printed else (1.0 - epsilon) * min(least, 1.0))
