"""Theorems that bound the regret of KONS, ONS and FD-SON, and kernel ridge regression in hindsight.

A_t of SON is αI + Σ (σ_s + η_s) g_s g_sᵀ, so a learner's `curvature` is σ + η. A sketch is of G_T,
with rows √(σ_t + η_t)·g_t.
"""

import math
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigvalsh
from scipy.sparse import csr_array

from koco_stream.errors import WrongInput
from koco_stream.types import Array


def theorem_1_curved(
    *, alpha: float, w_norm2: float, d_eff: float, rounds: int, curvature: float, lipschitz: float
) -> float:
    """The bound on the regret of KONS for η_t = σ > 0 (ICML, Theorem 1, second form).

    α‖w‖² + d_eff (1 + log(1 + σL²T/α))/σ, which Lemma 3 gives; the print differs (docs/errata.md,
    K10).
    """
    logarithm = 1.0 + math.log1p(curvature * lipschitz**2 * rounds / alpha)
    return alpha * w_norm2 + d_eff * logarithm / curvature


def effective_dimension(K: Array, ridge: float) -> float:
    """d_eff(ridge) = tr K(K + ridge·I)⁻¹ (ICML, equation 3), from the eigenvalues."""
    values = np.maximum(eigvalsh(K), 0.0)  # below 0 by rounding
    return float((values / (values + ridge)).sum())


def son_theorem_2(*, n_features: int, gradient_norms2: float, **given: Any) -> float:
    """The bound on the regret of the online Newton step without a sketch (SON, Theorem 2).

    ½α‖w‖² + 2(CL)² Σ η_t + d/(2(σ + η_T)) ln(1 + (σ + η_T) Σ‖g_t‖²/(dα)).
    """
    least = given["curvature"] + float(given["step_sizes"][-1])
    logarithm = math.log1p(least * gradient_norms2 / (n_features * given["alpha"]))
    return son_regret(**given, learnt=n_features * logarithm)


def son_theorem_3(*, sketch_size: int, spectrum: Array, **given: Any) -> float:
    """The bound on the regret of `FDSON` (SON, Theorem 3), for its best k from 0 to m.

    ½α‖w‖² + 2(CL)² Σ η_t + 2m/(2(σ + η_T)) ln(1 + tr(GᵀG)/(2mα)) + (m + 1)Ω_k/(2(m + 1 − k)(σ +
    η_T)α), where Ω_k = Σ_{i>k} λ_i(GᵀG). `FDSON` keeps more rows than the print's Algorithm 2, and
    the trace is that of what is sketched (docs/errata.md, S17).
    """
    rows = sketch_size + 1
    rank = 2 * sketch_size
    alpha = given["alpha"]
    sketched = rank * math.log1p(spectrum.sum() / (rank * alpha))
    lost = min(rows * spectrum[k:].sum() / ((rows - k) * alpha) for k in range(rows))
    return son_regret(**given, learnt=sketched + lost)


def son_regret(
    *,
    alpha: float,
    w_norm2: float,
    step_sizes: Array,
    curvature: float,
    clip: float,
    lipschitz: float,
    learnt: float,
) -> float:
    """½α‖w‖² + 2(CL)² Σ η_t + R/(2(σ + η_T)), the form of the bounds of SON."""
    least = curvature + float(step_sizes[-1])
    if not least > 0.0 or (np.diff(step_sizes) > 0.0).any():
        raise WrongInput("η_t must not increase, and σ + η_T must be above 0")
    steps = 2.0 * (clip * lipschitz) ** 2 * float(np.sum(step_sizes))
    return 0.5 * alpha * w_norm2 + steps + learnt / (2.0 * least)


def spectrum_of(gradients_to_sketch: csr_array) -> Array:
    """The eigenvalues of G_TᵀG_T that may differ from 0."""
    G = gradients_to_sketch
    gram = G.T @ G if G.shape[1] <= G.shape[0] else G @ G.T
    return np.maximum(eigvalsh(gram.toarray()), 0.0)[::-1]


def best_in_hindsight(
    K: Array, y: Array, alpha: float, clip: float = math.inf
) -> tuple[Array, float]:
    """Kernel ridge regression, argmin_f Σ (f(x_t) − y_t)² + α‖f‖², times a factor.

    f = Σ a_i k(x_i, ·) with a = (K + αI)⁻¹y. With the factor |f(x_t)| ≤ `clip` on all rows, but f
    is not the best such function.
    """
    try:
        a = cho_solve(cho_factor(K + alpha * np.eye(len(y)), lower=True), y)
    except LinAlgError:
        raise WrongInput(
            f"K + {alpha:g} I is not positive definite: K is not a kernel matrix, or the ridge is"
            " smaller than its rounding error"
        ) from None
    predictions = y - alpha * a
    largest = float(np.abs(predictions).max(initial=0.0))
    factor = clip / largest if largest > clip else 1.0
    # Clipped, because a product may round to a value beyond the clip.
    return np.clip(factor * predictions, -clip, clip), factor * factor * float(a @ predictions)
