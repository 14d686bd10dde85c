"""RP-SON's sketch S ← S + r ĝᵀ with r ~ N(0, I/m) (docs/errata.md, S5), and H = (αI + SSᵀ)⁻¹.

A column of S changes only where the row is non-zero, so w = w̄ + Sᵀb needs no more than b and sparse
changes of w̄.

H is kept explicitly while that is exact enough. With s = Sĝ, n = ‖ĝ‖² and δ = n − sᵀHs, all of its
update is positive: Δ = δ rᵀHr + (1 + rᵀHs)², and H ← H − (δ Hr(Hr)ᵀ + (1 + rᵀHs)(Hr(Hs)ᵀ +
Hs(Hr)ᵀ) − rᵀHr Hs(Hs)ᵀ)/Δ, H_t S_tĝ = ((1 + rᵀHs) Hs + δ Hr)/Δ (S15). Every 4m rounds, and when
rounding shows, H is made anew from SSᵀ, which is kept beside it. Once SSᵀ is a thousand times α,
each product with H is refined by a step on its residual. Once it is a million times α, an explicit
H has too few digits for x − SᵀHSx even so, and the rounds from then on solve with the Cholesky
factor of αI + SSᵀ: O(m³ + ms), counted as dense rounds.
"""

import math
from typing import Any, NamedTuple

from koco_stream.learners.linear.online_newton import Diagnostics, Feeding
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import (
    add_outer,
    gather,
    named_rows,
    scatter,
    times,
)
from koco_stream.numerics.linear_algebra import factor_shifted, inverse_of_shifted, solve_factored
from koco_stream.numerics.random import normal
from koco_stream.types import Array

FOLD_AT = 1e3  # w̄ ← w̄ + Sᵀb, b ← 0 if the terms of bᵀx̂, which cancel with w̄ᵀx, are this many C
# From trace(SSᵀ) = this many times α on H is not kept: its rounding, 1e-16/α, times λ has to stay
# below α/λ.
SOLVE_AT = 1e6
REFINE_AT = 1e3  # from here on Hv is refined by a step on what v − (αI + SSᵀ)Hv leaves
INACCURATE_AT = 1e-9  # H is made anew if that step is larger than this share of Hv


class Vectors(NamedTuple):
    """Small vectors (W,), of which m numbers count. State: b. Of a round: x̂ = Sx; r; Hx = Hx̂; Hr;
    on_r and on_s, factors of H's update; both, Sĝ + ‖ĝ‖²r; coefficients, the multiples of x that
    are added to the table.
    """

    b: Array
    x_hat: Array
    r: Array
    Hx: Array
    Hr: Array
    on_r: Array
    on_s: Array
    both: Array
    coefficients: Array


class State(NamedTuple):
    """t: () rounds. seed: () of the r's. table: (d, W), row j = column j of S (m numbers), then
    w̄_j, then D_jj if `diagonal`, then padding. small: the `Vectors`. H, K, L: (W, W) H, SSᵀ, the
    Cholesky factor of αI + SSᵀ. trace: () that of SSᵀ. solves: () 1 once rounds solve with L.
    terms: () Σ|b_i x̂_i| of the round's row. fed: how rows are fed.
    """

    t: Array
    seed: Array
    table: Array
    small: Array
    H: Array
    K: Array
    L: Array
    trace: Array
    solves: Array
    terms: Array
    fed: Feeding
    diagnostics: Diagnostics

    @jit
    def inspect(s: Any, params: Any, idx: Array, x: Array) -> tuple[float, float]:
        """Algorithm 1, line 5: uᵀx and ‖x‖² of the row (idx, x), and x̂ = Sx."""
        v, m = named_rows(Vectors, s.small, params.shape), params.sketch_size
        n2 = gather(s.table, params.shape, idx, x, v.x_hat)
        margin, terms = v.x_hat[m], 0.0  # w̄ᵀx
        for i in range(m):
            margin += v.b[i] * v.x_hat[i]
            terms += abs(v.b[i] * v.x_hat[i])
        v.x_hat[m:] = 0.0
        s.terms[()] = terms
        return margin, n2

    @jit
    def residual(s: Any, params: Any, idx: Array, x: Array, n2: float) -> float:
        """αxᵀA⁻¹x = ‖x‖² − x̂ᵀHx̂, and Hx̂."""
        v, m, trace = named_rows(Vectors, s.small, params.shape), params.sketch_size, s.trace[()]
        if s.solves[()] == 0 and trace > SOLVE_AT * params.alpha:
            factor_shifted(s.K, m, params.alpha, s.L)
            s.solves[()] = 1
        accurate = times_H(params, s, v.x_hat, v.Hx)
        xHx = first_dot(v.x_hat, v.Hx, m)
        if s.solves[()] == 0 and not (accurate and 0.0 <= xHx <= n2):
            inverse_of_shifted(s.K, m, params.alpha, s.H, s.L)
            times_H(params, s, v.x_hat, v.Hx)
            xHx = first_dot(v.x_hat, v.Hx, m)
        # Never less than what the largest possible eigenvalue of A leaves of it.
        return max(n2 - xHx, n2 * params.alpha / (params.alpha + trace))

    @inlined
    def ridge(s: Any, params: Any) -> float:
        return params.alpha

    @jit
    def project(s: Any, params: Any, excess: float, residual: float) -> float:
        """Algorithm 1, line 5: γ_p = τ_C(uᵀx)/(αxᵀA⁻¹x), w ← u − γ_p(x − SᵀHx̂). Returns −γ_p."""
        v, gamma_p = named_rows(Vectors, s.small, params.shape), excess / residual
        for i in range(params.sketch_size):
            v.b[i] += gamma_p * v.Hx[i]
        return -gamma_p

    @jit
    def update(
        s: Any,
        params: Any,
        idx: Array,
        x: Array,
        c: float,
        slope: float,
        w_x: float,
        residual: float,
        n2: float,
    ) -> None:
        """Algorithm 1, lines 8 and 9: S ← S + r ĝᵀ, and u ← w − (g − SᵀHSg)/α, with w̄ freed of
        what S's change adds to Sᵀb.
        """
        v, m, alpha = named_rows(Vectors, s.small, params.shape), params.sketch_size, params.alpha
        t, scale = s.t[()], 1.0 / math.sqrt(m)
        for i in range(m):
            v.r[i] = scale * normal(s.seed[()], t * m + i)
        accurate = times_H(params, s, v.r, v.Hr)
        rHr, rHs = first_dot(v.r, v.Hr, m), c * first_dot(v.r, v.Hx, m)
        # Inaccurate if below what H's smallest possible eigenvalue allows; that is then taken, and
        # H made anew after the round.
        least = first_dot(v.r, v.r, m) / (alpha + s.trace[()])
        accurate, rHr = accurate and rHr >= least, max(rHr, least)
        n, delta, one = c * c * n2, c * c * residual, 1.0 + rHs
        per_g = slope / (alpha * c) if c != 0.0 else 0.0
        Delta = delta * rHr + one * one
        w_x -= slope / alpha + c * first_dot(v.r, v.b, m)
        for i in range(m):
            v.on_r[i] = -(delta * v.Hr[i] + one * c * v.Hx[i]) / Delta
            v.on_s[i] = -c * (one * v.Hr[i] - rHr * c * v.Hx[i]) / Delta
            v.both[i] = c * v.x_hat[i] + n * v.r[i]
            v.coefficients[i] = c * v.r[i]  # δS = r ĝᵀ
            v.b[i] += per_g * (one * c * v.Hx[i] + delta * v.Hr[i]) / Delta
        if s.solves[()] == 0:
            add_outer(s.H, m, v.on_r, v.Hr, params.shape)
            add_outer(s.H, m, v.on_s, v.Hx, params.shape)
        add_outer(s.K, m, v.both, v.r, params.shape)
        add_outer(s.K, m, v.coefficients, v.x_hat, params.shape)
        s.trace[()] = 0.0
        for i in range(m):
            s.trace[()] += s.K[i, i]
        v.coefficients[m] = w_x
        scatter(s.table, params.shape, idx, x, v.coefficients)
        if s.terms[()] > FOLD_AT * params.clip:
            fold(params, s)
        if s.solves[()] > 0:
            factor_shifted(s.K, m, alpha, s.L)
            s.diagnostics.dense_rounds[()] += 1
        elif not accurate or t % (4 * m) == 0:
            inverse_of_shifted(s.K, m, alpha, s.H, s.L)


@jit
def first_dot(x: Array, y: Array, n: int) -> float:
    """Σ x_i y_i over i < n, summed in order."""
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total


@jit
def times_H(params: Any, s: State, right: Array, out: Array) -> bool:
    """out ← H·right, by the factor if the state `solves`. Returns whether the product's rounding is
    small enough.
    """
    m = params.sketch_size
    if s.solves[()] > 0:
        solve_factored(s.L, m, 0, right, out)
        return True
    times(s.H, right, out, params.shape)
    if s.trace[()] <= REFINE_AT * params.alpha:
        return True
    v, size, change = named_rows(Vectors, s.small, params.shape), 0.0, 0.0
    times(s.K, out, v.on_r, params.shape)
    for i in range(m):
        v.on_r[i] = right[i] - params.alpha * out[i] - v.on_r[i]
    times(s.H, v.on_r, v.on_s, params.shape)
    for i in range(m):
        size += abs(out[i])
        change += abs(v.on_s[i])
        out[i] += v.on_s[i]
    return change <= INACCURATE_AT * size


@jit
def fold(params: Any, s: State) -> None:
    """w̄ ← w̄ + Sᵀb, b ← 0: O(md), at rounds decided by the state."""
    m, b = params.sketch_size, named_rows(Vectors, s.small, params.shape).b
    for j in range(s.table.shape[0]):
        for i in range(m):
            s.table[j, m] += b[i] * s.table[j, i]
    b[:] = 0.0
    s.diagnostics.folds[()] += 1
