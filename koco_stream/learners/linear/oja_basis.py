"""V = FZ, the rows of Oja's sketch as they are kept: Z in a table, F beside it.

What changes all of V at once, a fold or a clean-up, is a linear map of the table's rows: it is
applied to a row when its feature is next seen (koco_stream.numerics.lazy_maps). So no round passes
over all features.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.by_reference import by_reference
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import add_outer, named_rows, scatter
from koco_stream.numerics.lazy_maps import (
    current_epoch,
    end_epoch,
    first_use,
    refresh,
    refresh_used,
    scatter_first_time,
)
from koco_stream.numerics.random import normal
from koco_stream.types import Array

FOLDS = 32  # after so many, all used rows are brought up to date; in most runs there are fewer
IN_THE_SPAN = 1e-12  # a smaller remaining share of a column's square norm is rounding


class Vectors(NamedTuple):
    """Small vectors (W,), of which m numbers count. State: beta, β; tlam, tΛ; D = tΛ/(α + tΛ) =
    tΛH with the paper's H, and I_minus_D = αH. Of a round: z = Zx, then w̄ᵀx at m, last the number
    of the row's features that were never seen; p = Vx; q = Vĝ; before, Σ_{j<i} p_j²; after, Σ_{j>i}
    p_j β_j; own and earlier, the factors by which L⁻¹ takes a row's own and the earlier rows'
    numbers; coefficients, the multiples of x that are added to the table; to_weights, zero but
    within a dense round, what each row of Z is still to add to w̄.
    """

    beta: Array
    tlam: Array
    I_minus_D: Array
    D: Array
    z: Array
    p: Array
    before: Array
    after: Array
    coefficients: Array
    q: Array
    own: Array
    earlier: Array
    to_weights: Array


@inlined
def materialise(params: Any, s: Any, row: int, feature: int) -> None:
    """Bring this row of the table, which is that of `feature`, up to date.

    If the sketch's random rows are drawn by need, and this is the first use, they are drawn.
    """
    m = params.sketch_size
    if s.scale[()] > 0.0 and s.table[row, s.table.shape[1] - 1] == 0.0:
        for i in range(m):
            s.table[row, i] = s.scale[()] * normal(s.seed[()], (i << 32) + feature)
        first_use(s.maps, s.table, row)
    refresh(s.maps, s.table, row, params.shape)


@jit
def materialise_row(params: Any, s: Any, idx: Array) -> None:
    """Bring the table's rows of these features up to date."""
    for i in range(idx.size):
        if s.table[idx[i], s.table.shape[1] - 1] != current_epoch(s.maps):
            materialise(params, s, np.int64(idx[i]), np.int64(idx[i]))


@jit
def materialise_copies(params: Any, s: Any, features: Array) -> None:
    """Bring a table's rows up to date that were copied from those of these features, in order."""
    p, state = by_reference(params), by_reference(s)
    for j in range(features.size):
        materialise(p, state, j, np.int64(features[j]))


@inlined
def start_row(params: Any, s: Any, n2: float, residual: float) -> int:
    """A row of V becomes what the sketch leaves of x, ρ⁻¹(x − Vᵀp) with ρ² = `residual`: Z's new
    row is x/ρ, F's is −pᵀF/ρ and a 1 (S10). Returns which; Z's is still to be written.

    z and p become what they were had the row been there when x came. ρ² is a difference: what V
    lacks of orthonormality is multiplied by ‖x‖²/ρ².
    """
    v, F, rho, row = (
        named_rows(Vectors, s.small, params.shape),
        s.F,
        math.sqrt(residual),
        s.found[()],
    )
    for k in range(row):
        total = 0.0
        for i in range(row):
            total += v.p[i] * F[i, k]
        F[row, k] = -total / rho
    F[row, row] = 1.0
    v.z[row] = n2 / rho
    v.p[row] = rho
    s.found[()] = row + 1
    s.growth[()] *= math.sqrt(n2 / residual)
    s.orthonormality_error[()] *= n2 / residual
    return int(row)


@inlined
def write_row(params: Any, s: Any, idx: Array, x: Array, row: int, residual: float) -> None:
    """Z's row that has started: x/ρ. All features that it has are the row's, and none has a number
    there yet.
    """
    v = named_rows(Vectors, s.small, params.shape)
    for k in range(len(params.shape)):
        v.coefficients[k] = 0.0
    v.coefficients[row] = 1.0 / math.sqrt(residual)
    scatter_first_time(s.maps, s.table, params.shape, idx, x, v.coefficients)


@inlined
def flush(params: Any, s: Any) -> None:
    """w̄ ← w̄ + Vᵀβ, β ← 0, of which the fold of this round takes care: before a dense round would
    make β, and w̄ against it, very large.
    """
    v, m = named_rows(Vectors, s.small, params.shape), params.sketch_size
    for k in range(m):
        for i in range(m):
            v.to_weights[k] += v.beta[i] * s.F[i, k]
    for i in range(m):
        v.beta[i] = 0.0


@jit
def fold(params: Any, s: Any) -> None:
    """Z ← FZ, F ← I, w̄ ← w̄ + Vᵀβ, β ← 0, at rounds decided by the state (S4)."""
    v, m = named_rows(Vectors, s.small, params.shape), params.sketch_size
    flush(params, s)
    own = s.maps.maps[s.maps.epoch[()]]
    for k in range(m):
        for i in range(m):
            own[k, i] = s.F[i, k]
            s.F[i, k] = 1.0 if i == k else 0.0
        own[k, m] = v.to_weights[k]
        own[m, k] = 0.0
        v.to_weights[k] = 0.0
    own[m, m] = 1.0
    if s.scale[()] > 0.0 and current_epoch(s.maps) == s.maps.maps.shape[0]:
        for j in range(s.table.shape[0]):  # draw all that is left, before the maps are dropped
            materialise(params, s, j, j)
    end_epoch(s.maps, s.table, params.shape)
    s.growth[()] = 1.0
    s.diagnostics.folds[()] += 1


@inlined
def add_densely(params: Any, s: Any, idx: Array, x: Array, factor: float) -> None:
    """Z ← L⁻¹(V + γ q ĝᵀ) after `orthonormalise`: row i is that of L⁻¹V and γ q_i ĝ/√(s_{i−1} s_i),
    so that no digit of V is lost, however large ĝ is. `factor` is c/(2 + γ‖ĝ‖²).
    """
    v, m = named_rows(Vectors, s.small, params.shape), params.sketch_size
    for k in range(len(params.shape)):
        v.coefficients[k] = 0.0
    for i in range(m):
        v.coefficients[i] = factor * v.earlier[i]
        v.coefficients[m] += v.beta[i] * v.coefficients[i]
    fold(params, s)
    materialise_row(params, s, idx)
    scatter(s.table, params.shape, idx, x, v.coefficients)
    s.diagnostics.dense_rounds[()] += 1


@inlined
def clean(params: Any, s: Any) -> None:
    """Make V's rows orthonormal after a fold, when Z is V: F ← L⁻¹ with LLᵀ = VVᵀ.

    This passes over all features that were used. A row in the span of those before it becomes zero.
    V has to be nearly orthonormal: rounding errors are multiplied by the square of its condition
    number.
    """
    m, column = params.sketch_size, named_rows(Vectors, s.small, params.shape).coefficients
    refresh_used(s.maps, s.table, params.shape)
    for i in range(m):
        s.F[i, i] = 0.0
    for at in range(s.maps.n_used[()]):
        for k in range(m):
            column[k] = s.table[s.maps.used[at], k]
        column[m] = 0.0
        add_outer(s.F, m, column, column, params.shape)
    invert_factor(s.F, m)
    s.orthonormality_error[()] = 1.0
    s.diagnostics.cleanings[()] += 1


@inlined
def invert_factor(square: Array, m: int) -> None:
    """Replace a Gram matrix G (m, m) by L⁻¹, where LLᵀ = G.

    If row i of G is in the span of those before it, row i of L⁻¹ is zero.
    """
    for i in range(m):
        original = square[i, i]
        for k in range(i + 1):
            total = square[i, k]
            for n in range(k):
                total -= square[i, n] * square[k, n]
            if k < i:
                square[i, k] = total * square[k, k]  # the diagonal holds 1/L_kk
            else:
                independent = total > IN_THE_SPAN * original
                square[i, i] = 1.0 / math.sqrt(total) if independent else 0.0
    for i in range(m):  # the rows before i are those of L⁻¹ already, and row i before k
        for k in range(i):
            total = 0.0
            for n in range(k, i):
                total -= square[i, n] * square[n, k]
            square[i, k] = total * square[i, i]
            square[k, i] = 0.0
