"""The papers' theoretical quantities as numbers: leverage scores, effective dimensions, the terms
of a run's regret, and the bounds.

Sources: Calandriello, Lazaric, Valko, "Second-Order Kernel Online Convex Optimization with Adaptive
Sketching" (ICML 2017, "ICML"), their poster "Efficient second-order online kernel learning with
adaptive embedding" (NIPS 2017, "the poster"), and Luo, Agarwal, Cesa-Bianchi, Langford, "Efficient
Second Order Online Learning by Sketching" (NIPS 2016, "SON").

Notation: T rounds, K (n, n) the kernel matrix of the rows in order, α a ridge, ġ_t = ℓ'_t(ŷ_t) the
slopes, η_t the coefficient of g_t g_tᵀ in A_t, σ the losses' curvature (`koco_stream.losses`), L a
bound on |ġ|, C the clip. K̄ = DKD with D = diag(ġ_t √η_t) is the rescaled matrix.

The bounds of the ICML paper and of the poster assume kernels with k(x, x) ≤ 1. All bounds are for a
w with |f_w(x_t)| ≤ C on all rows. Matrices are stored densely, for n of a few thousand.
"""

from koco_stream.theory.kons_bounds import (
    DictionarySize,
    theorem_1,
    theorem_1_curved,
    theorem_1_flat,
    theorem_2_beta,
    theorem_2_size,
    theorem_3,
)
from koco_stream.theory.leverage import (
    Lemma3,
    effective_dimension,
    lemma_3,
    log_det,
    online_effective_dimension,
    online_leverage_scores,
    projection_error,
    ridge_leverage_scores,
)
from koco_stream.theory.poster_bounds import (
    poster_epochs,
    poster_theorem_1,
    poster_theorem_2,
    proposition_3_error,
)
from koco_stream.theory.son_bounds import (
    hard_sequence,
    omega,
    son_theorem_1,
    son_theorem_2,
    son_theorem_3,
    spectrum,
)
from koco_stream.theory.terms import (
    Hindsight,
    best_in_hindsight,
    curvature_term,
    gradient_term,
    newton_regret_bound,
    rescaled_kernel,
)

__all__ = [
    "DictionarySize",
    "Hindsight",
    "Lemma3",
    "best_in_hindsight",
    "curvature_term",
    "effective_dimension",
    "gradient_term",
    "hard_sequence",
    "lemma_3",
    "log_det",
    "newton_regret_bound",
    "omega",
    "online_effective_dimension",
    "online_leverage_scores",
    "poster_epochs",
    "poster_theorem_1",
    "poster_theorem_2",
    "projection_error",
    "proposition_3_error",
    "rescaled_kernel",
    "ridge_leverage_scores",
    "son_theorem_1",
    "son_theorem_2",
    "son_theorem_3",
    "spectrum",
    "theorem_1",
    "theorem_1_curved",
    "theorem_1_flat",
    "theorem_2_beta",
    "theorem_2_size",
    "theorem_3",
]
