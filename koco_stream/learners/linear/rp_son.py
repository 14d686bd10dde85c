"""RP-SON: sketched online Newton with random projections, O(m² + ms) a round at s non-zeros.

Luo, Agarwal, Cesa-Bianchi, Langford (NIPS 2016), Algorithm 1 and section 3: S ← S + r ĝᵀ with r ~
N(0, I/m) (S5 of docs/errata.md), and H = (αI + SSᵀ)⁻¹. A line of S changes only where the row is
non-zero, so w = w̄ + Sᵀb needs no more than b and sparse changes of w̄.

With s = Sĝ, n = ‖ĝ‖² and δ = n − sᵀHs, all of H's update is positive: Δ = δ rᵀHr + (1 + rᵀHs)², and
H ← H − (δ Hr(Hr)ᵀ + (1 + rᵀHs)(Hr(Hs)ᵀ + Hs(Hr)ᵀ) − rᵀHr Hs(Hs)ᵀ)/Δ, H_t S_tĝ = ((1 + rᵀHs) Hs + δ
Hr)/Δ (S15). Every 4m rounds, and when rounding has spoilt it, H is made anew from SSᵀ, which is
kept beside it. Once SSᵀ is a million times α, the rounds from then on solve with the Cholesky
factor of αI + SSᵀ: O(m³ + ms), counted as dense rounds (kept_inverse.py).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.learners import spec
from koco_stream.learners.base import Learner
from koco_stream.learners.linear import kept_inverse as inverse
from koco_stream.learners.linear.kept_inverse import BOTH, COEF, HR, HX, ON_R, ON_S, X_HAT, B, R
from koco_stream.learners.linear.online_newton import (
    Diagnostics,
    forward,
    no_diagnostics,
    sketch_params,
    step,
    table_cost,
)
from koco_stream.numerics.compiler import jit
from koco_stream.numerics.instructions.feature_rows import (
    aligned_zeros,
    gather,
    row_at,
    scatter,
    shape_for,
)
from koco_stream.numerics.linear_algebra import factor_shifted, inverse_of_shifted
from koco_stream.numerics.random import normal
from koco_stream.types import Array

FOLD_AT = 1e3  # w̄ ← w̄ + Sᵀb, b ← 0 if the terms of bᵀx̂, which cancel with w̄ᵀx, are this many C


class Params(NamedTuple):
    """loss: its code. alpha: α. clip: C. curvature: the coefficient of g gᵀ in A, divided by √t if
    `decreasing`. sketch_size: m. diagonal: NONE, BEFORE or UPDATED (S7). project_weights: whether u
    is projected, or only its prediction truncated. shape: its length
    is W, the width of a line.
    """

    loss: int
    alpha: float
    clip: float
    curvature: float
    decreasing: bool
    sketch_size: int
    diagonal: int
    project_weights: bool
    shape: tuple[int, ...]
    d_column: int


class State(NamedTuple):
    """t: () rounds. seed: () of the r's. table: (d,
    W), line j = column j of S (m numbers), then w̄_j, then D_jj if `diagonal`, then padding. a:
    (9·W + 3·W²,) the small vectors, H, SSᵀ, the factor. scaled: (d,) scratch for D^(−1/2) x, or
    (0,).
    """

    t: Array
    seed: Array
    table: Array
    a: Array
    scaled: Array
    diagnostics: Diagnostics

    @jit
    def inspect(s: Any, params: Params, idx: Array, x: Array) -> tuple[float, float]:
        """uᵀx and ‖x‖² for the row (idx, x); leaves x̂ = Sx in the scratch."""
        a, m, W = s.a, params.sketch_size, len(params.shape)
        n2 = gather(s.table, params.shape, idx, x, row_at(a, X_HAT * W, params.shape))
        margin = a[X_HAT * W + m]  # w̄ᵀx
        for i in range(m):
            margin += a[B * W + i] * a[X_HAT * W + i]
        for i in range(m, W):
            a[X_HAT * W + i] = 0.0
        return margin, n2

    @jit
    def residual(s: Any, params: Params, n2: float) -> float:
        """αxᵀA⁻¹x = ‖x‖² − x̂ᵀHx̂; leaves Hx̂ in the scratch."""
        a, m, W = s.a, params.sketch_size, len(params.shape)
        H, K, L = (
            inverse.FIRST_MATRIX * W,
            (inverse.FIRST_MATRIX + W) * W,
            (inverse.FIRST_MATRIX + 2 * W) * W,
        )
        terms = 0.0
        for i in range(m):
            terms += abs(a[B * W + i] * a[X_HAT * W + i])
        a[BOTH * W + m] = terms  # of bᵀx̂, which decide whether the round folds
        trace = inverse.trace_of(a, m, W)
        solving = s.diagnostics.dense_rounds[()] > 0 or trace > inverse.SOLVE_AT * params.alpha
        if solving and s.diagnostics.dense_rounds[()] == 0:
            factor_shifted(a, W, m, K, params.alpha, L)
        sound = inverse.times_H(a, params.shape, m, params.alpha, trace, solving, X_HAT * W, HX * W)
        xHx = inverse.dot(a, m, X_HAT * W, HX * W)
        if not (solving or (sound and 0.0 <= xHx <= n2)):
            inverse_of_shifted(a, W, m, K, params.alpha, H, L)
            inverse.times_H(a, params.shape, m, params.alpha, trace, False, X_HAT * W, HX * W)
            xHx = inverse.dot(a, m, X_HAT * W, HX * W)
        # Never less than what the largest possible eigenvalue of A leaves of it.
        return max(n2 - xHx, n2 * params.alpha / (params.alpha + trace))

    @jit
    def project(s: Any, params: Params, excess: float, residual: float) -> float:
        """Line 5: γ_p = τ_C(uᵀx)/(αxᵀA⁻¹x), w ← u − γ_p(x − SᵀHx̂). Returns −γ_p, w̄'s
        component of x.
        """
        a, W = s.a, len(params.shape)
        gamma_p = excess / residual
        for i in range(params.sketch_size):
            a[B * W + i] += gamma_p * a[HX * W + i]
        return -gamma_p

    @jit
    def update(
        s: Any,
        params: Params,
        idx: Array,
        x: Array,
        c: float,
        slope: float,
        w_coef: float,
        residual: float,
        n2: float,
    ) -> None:
        """Lines 7 to 9 for the row that was looked at last."""
        alpha, m, W, t = params.alpha, params.sketch_size, len(params.shape), s.t[()]
        a = s.a
        H, K, L = (
            inverse.FIRST_MATRIX * W,
            (inverse.FIRST_MATRIX + W) * W,
            (inverse.FIRST_MATRIX + 2 * W) * W,
        )
        trace = inverse.trace_of(a, m, W)
        solving = s.diagnostics.dense_rounds[()] > 0 or trace > inverse.SOLVE_AT * alpha
        s.diagnostics.dense_rounds[()] += solving
        terms = a[BOTH * W + m]

        # Line 8: S ← S + r ĝᵀ; SSᵀ and H follow.
        scale = 1.0 / math.sqrt(m)
        r_b = 0.0
        for i in range(m):
            a[R * W + i] = scale * normal(s.seed[()], t * m + i)
            r_b += a[R * W + i] * a[B * W + i]
        sound = inverse.times_H(a, params.shape, m, alpha, trace, solving, R * W, HR * W)
        rHr, rHs = inverse.dot(a, m, R * W, HR * W), c * inverse.dot(a, m, R * W, HX * W)
        # Spoilt if below what H's smallest possible eigenvalue allows; that is then taken, and H
        # made anew after the round.
        least = inverse.dot(a, m, R * W, R * W) / (alpha + trace)
        spoilt = not (sound and rHr >= least)
        rHr = max(rHr, least)
        n, delta = c * c * n2, c * c * residual
        one = 1.0 + rHs
        Delta = delta * rHr + one * one
        for i in range(m):
            a[ON_R * W + i] = -(delta * a[HR * W + i] + one * c * a[HX * W + i]) / Delta
            a[ON_S * W + i] = -c * (one * a[HR * W + i] - rHr * c * a[HX * W + i]) / Delta
            a[BOTH * W + i] = c * a[X_HAT * W + i] + n * a[R * W + i]
            a[COEF * W + i] = c * a[R * W + i]  # δS = r ĝᵀ
        if not solving:
            inverse.add_outer_at(a, params.shape, m, H, ON_R * W, HR * W)
            inverse.add_outer_at(a, params.shape, m, H, ON_S * W, HX * W)
        inverse.add_outer_at(a, params.shape, m, K, BOTH * W, R * W)
        inverse.add_outer_at(a, params.shape, m, K, COEF * W, X_HAT * W)
        # Line 9: u ← w − (g − SᵀHSg)/α, with w̄ freed of what S's change adds to Sᵀb.
        w_coef -= slope / alpha + c * r_b
        for i in range(m):
            if c != 0.0:
                a[B * W + i] += (
                    slope / (alpha * c) * (one * c * a[HX * W + i] + delta * a[HR * W + i]) / Delta
                )
        a[COEF * W + m] = w_coef
        scatter(s.table, params.shape, idx, x, row_at(a, COEF * W, params.shape))
        if terms > FOLD_AT * params.clip:
            fold(s.table, a, m, W)
            s.diagnostics.folds[()] += 1
        if solving:
            factor_shifted(a, W, m, K, alpha, L)
        elif spoilt or t % (4 * m) == 0:
            inverse_of_shifted(a, W, m, K, alpha, H, L)


def init(params: Params, n_features: int, seed: int) -> State:
    """w = 0, S = 0, H = I/α."""
    m, width = params.sketch_size, len(params.shape)
    a = aligned_zeros(inverse.FIRST_MATRIX + 3 * width, width)
    for i in range(m):
        a[inverse.FIRST_MATRIX + i, i] = 1.0 / params.alpha
    return State(
        t=np.zeros((), np.int64),
        seed=np.array(seed, np.uint64),
        table=aligned_zeros(n_features, width),
        a=a.reshape(-1),
        scaled=np.zeros(n_features * bool(params.diagonal)),
        diagnostics=no_diagnostics(),
    )


@jit
def fold(sw: Array, a: Array, m: int, W: int) -> None:
    """w̄ ← w̄ + Sᵀb, b ← 0: O(md), at rounds decided by the state."""
    for j in range(sw.shape[0]):
        for i in range(m):
            sw[j, m] += a[B * W + i] * sw[j, i]
    for i in range(m):
        a[B * W + i] = 0.0


class RPSON(Learner):
    """Sketched online Newton with random projections, in O(m² + ms) a round.

    Notes
    -----
    Luo et al. (NIPS 2016), Algorithm 1 and section 3.
    """

    parameters = (*spec.SHARED, spec.SKETCH_SIZE, *spec.NEWTON_STEP, spec.DIAGONAL, spec.PROJECTION)
    init, step, forward = staticmethod(init), staticmethod(step), staticmethod(forward)

    def __init__(
        self,
        sketch_size: int = 10,
        alpha: float = 1.0,
        *,
        curvature: float | None = None,
        curvature_schedule: str = "constant",
        diagonal: bool | str = False,
        projection: str = "weights",
        loss: str = "squared",
        clip: float = 1.0,
        fit_intercept: bool = False,
        seed: int = 0,
    ) -> None:
        self._keep(locals())

    @classmethod
    def to_params(cls, q: spec.Public) -> Params:
        m, diagonal = spec.whole(q, "sketch_size"), bool(q["diagonal"])
        return Params(**sketch_params(q), shape=shape_for(m + 1 + diagonal), d_column=m + 1)

    @classmethod
    def stochastic(cls, q: spec.Public) -> bool:
        return True

    @classmethod
    def cost(cls, q: spec.Public, size: spec.StreamSize) -> spec.Cost:
        m = spec.whole(q, "sketch_size")
        of_table, width = table_cost(q, size, m + 1), len(shape_for(m + 2))
        return spec.Cost(of_table.floats + 2 * width**2, 100 + of_table.nanoseconds)

    @property
    def sketch_(self) -> Array:
        """S (m, d), the sketch."""
        return self._state.table[:, : self._params.sketch_size].T.astype(np.float64)

    @property
    def coef_(self) -> Array:
        """The weights u (d,), the intercept's last; of the rescaled features if `diagonal`."""
        m = self._params.sketch_size
        return self._state.table[:, m] + self._state.table[:, :m] @ self._state.a[:m]
