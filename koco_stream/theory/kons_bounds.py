"""The theorems of the ICML 2017 paper on KONS, KORS and Sketched-KONS, and of the poster on
PROS-N-KONS, as numbers.
"""

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
    """Theorem 1 of ICML, first form: α‖w‖² + d_onl/η_T + 4C²L² Σ(η_t − σ), for steps that do not
    increase.

    `d_onl` is that of the rescaled kernel (K10; the print leaves out its bar); `step_sizes` (T,).
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
    """Theorem 1 of ICML, second form, η_t = σ > 0: α‖w‖² + 2 d_eff log(2σL²T)/σ with d_eff =
    d_eff(α/(σL²)) of the kernel.

    `printed=False` has 1 + log(1 + σL²T/α) for 2 log(2σL²T), as Lemma 3 gives it: valid for every
    α, while the print needs an α that is not tiny (α ≥ e/(3σL²T) is enough where σL²T ≥ 2; K10).
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
    """Theorem 1 of ICML, third form, σ = 0 and η_t = 1/(LC√t): α‖w‖² + 4LC√T d_eff log(2L²T) with
    d_eff = d_eff(α/L²) of the kernel.

    `printed=False` is what the first form and Lemma 3 give: α‖w‖² + LC√T (d_eff (1 + log(1 +
    LT/(Cα))) + 8) with d_eff = d_eff(αC/L). The print takes η_1 = 1/(LC) for at most 1, and its 8
    into the logarithm, which needs d_eff not much below 1 (K13).
    """
    root = lipschitz * clip * math.sqrt(rounds)
    if printed:
        return alpha * w_norm2 + 4.0 * root * d_eff * math.log(2.0 * lipschitz**2 * rounds)
    return alpha * w_norm2 + root * (
        d_eff * (1.0 + math.log1p(lipschitz * rounds / (clip * alpha))) + 8.0
    )


def theorem_2_beta(rounds: int, delta: float, epsilon: float) -> float:
    """The least β for which Theorem 2 of ICML holds with probability 1 − δ: 3 log(T/δ)/ε² (K7)."""
    return 3.0 * math.log(rounds / delta) / epsilon**2


class DictionarySize(NamedTuple):
    """Bounds on the size of KORS's dictionary (ICML, Theorem 2): `corrected` 3ρβ·d_onl, which
    follows from its point (3); `printed` 3ρβ·d_onl/ε², in which ε² is counted twice (K9);
    `printed_last` 6ρ·d_eff·log²(2T/δ)/ε², which does not follow from `corrected`, whose β and Lemma
    3 give 9ρ·d_eff·log(T/δ)(1 + log(‖K‖/α + 1))/ε².
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
    """The bounds of `DictionarySize`; ρ = (1 + ε)/(1 − ε). With `estimate="poster"`, whose τ̃ is
    divided by ρ, `corrected` is 3β·d_onl.
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
    """Theorem 3 of ICML for Sketched-KONS, η_t = σ: α‖w‖² + 2 d_eff log(2σL²T)/(σ max(γ, β
    τ̄_min)).

    `sampling_floor` is γ, `smallest_score` τ̄_min, the least τ_{t,t} of the rescaled kernel;
    `d_eff` as in `theorem_1_curved`. `printed=False` keeps what the print drops: the factor 1 − ε
    of Corollary 1, and that a coin's probability is at most 1 (with β τ̄_min > 1 the print would be
    below KONS's own bound; K14); its logarithm is that of `theorem_1_curved`.
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


def proposition_3_error(*, epsilon: float, ridge: float) -> float:
    """ε/(1 − ε)·γ, above `projection_error` of KORS's dictionary in every round (the poster,
    Proposition 3, point 1) with probability 1 − δ for β ≥ `theorem_2_beta`.

    `ridge` is γ; no bound for ε = 1. It follows from point (1) of the ICML paper's Theorem 2, whose
    estimate has the factor 1 + ε; the poster's estimate is ρ times smaller (docs/errata.md, P7).
    """
    return ridge * epsilon / (1.0 - epsilon) if epsilon < 1.0 else math.inf


def poster_epochs(*, d_eff: float, rounds: int, beta: float) -> float:
    """J ≤ 3β·d_eff·log(2T), the poster's bound on the restarts; `d_eff` is at KORS's ridge γ.
    log(2T) needs γ ≥ 1 and T ≥ 4 (P5).
    """
    return 3.0 * beta * d_eff * math.log(2.0 * rounds)


def poster_theorem_1(
    *, alpha: float, w_norm2: float, d_eff: float, rounds: int, epochs: float, ridge: float
) -> float:
    """J(α‖w‖² + d_eff log(T/α)) + γT/α, inside the O(·) of the poster's Theorem 1: to be compared
    as a ratio only.

    `d_eff` is at α, `epochs` is J, `ridge` γ. The print leaves a bracket open; the last term is
    outside J, since the epochs' rounds add up to T (P6).
    """
    return epochs * (alpha * w_norm2 + d_eff * math.log(rounds / alpha)) + ridge * rounds / alpha


def poster_theorem_2(
    *,
    alpha: float,
    w_norm2: float,
    d_eff: float,
    rounds: int,
    epochs: float,
    largest_epoch_loss: float,
) -> float:
    """J(d_eff log T + α max_j L*_j + α‖w‖²), inside the O(·) of the poster's Theorem 2 (squared
    loss): to be compared as a ratio only.

    `largest_epoch_loss` is max_j L*_j, the least of Σ (f(x_t) − y_t)² + α‖f‖² over an epoch's rows;
    `d_eff` is at α, `epochs` is J.
    """
    return epochs * (d_eff * math.log(rounds) + alpha * largest_epoch_loss + alpha * w_norm2)
