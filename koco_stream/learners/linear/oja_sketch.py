"""Oja's sketch as Oja-SON keeps it: V = FZ, with w = w̄ + Vᵀβ beside it (docs/errata.md, S9).

V's rows are orthonormal, and Z changes only where a row is non-zero. Z and w̄ are the table `zw` (d,
W), line j = column j of Z (m numbers), then w̄_j, …, and last the epoch of the line. The small
vectors and F lie in one flat array `a`; `a[P * W + i]` is p_i.

What changes all of V at once, a fold or a clean-up, is a linear map of the table's lines: it is
applied to a line when its feature is next seen (koco_stream.numerics.lazy_maps). So no round passes
over all features.
"""

import math
from typing import Any

from koco_stream.learners.spec import Parameter
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import (
    add_outer,
    gather,
    gather_current,
    line_dot,
    line_dot3,
    row_at,
    scatter,
    substitute,
    sums_after,
    sums_before,
    times,
)
from koco_stream.numerics.lazy_maps import (
    EPOCH,
    PERIOD,
    USED,
    Maps,
    current_epoch,
    end_epoch,
    first_use,
    is_current,
    map_at,
    refresh,
    refresh_used,
    scatter_lines,
)
from koco_stream.numerics.random import normal
from koco_stream.types import Array

SKETCH_RATE = Parameter(
    "sketch_rate",
    float,
    "c in the sketch's rate min(c/t, 1)",
    low=0,
    above=True,
    matters_if=("sketch_size", range(1, 1024)),
    note="1 in the paper, for rows as they are. Rows that were scaled down turn the sketch less,"
    " and 16 to 128 work better (docs/errata.md, S8).",
)
# At the printed rate the first gradients err less on 37 of 65 streams, random rows on 11
# (docs/findings.md); and they cost less.
SKETCH_START = Parameter(
    "sketch_start",
    str,
    "how the sketch starts: from the first gradients, or from random rows",
    choices=("random", "gradients"),
    matters_if=("sketch_size", range(1, 1024)),
    note="The gradients are orthonormalised. From 1,000·m features on, random rows are orthonormal"
    " in expectation (docs/errata.md, S10).",
)

# Vectors in `a`, each (W,). State: BETA β; TLAM tΛ; I_MINUS_D and D, where D = tΛ/(α + tΛ) = tΛH
# with the paper's H, and I − D = αH. Scratch, meaningless between rounds: Z is Zx; P p = Vx; ENERGY
# Σ_{j<i} p_j²; MARGIN Σ_{j>i} p_j β_j; COEF what x adds to its features' lines; Q q = Vĝ; OWN and
# EARLIER the factors by which L⁻¹ takes a row's own and the earlier rows' numbers; SETTLED, zero
# but within a dense round, what each row of Z is still to add to w̄. Then F, (W, W).
BETA, TLAM, I_MINUS_D, D, Z, P, ENERGY, MARGIN, COEF, Q, OWN, EARLIER, SETTLED, F = range(14)

FOLDS = 32  # after so many, all used lines are brought up to date; in most runs there are fewer

IN_THE_SPAN = 1e-12  # a smaller remaining share of a column's square norm is rounding


@jit
def bring(zw: Array, maps: Maps, scale: Array, seed: Array, shape: Any, m: int, idx: Array) -> None:
    """Bring the lines of a row's features up to date."""
    for i in range(idx.size):
        if not is_current(maps, zw, idx[i]):
            bring_line(zw, maps, scale, seed, shape, m, int(idx[i]), int(idx[i]))


@jit
def bring_line(
    zw: Array, maps: Maps, scale: Array, seed: Array, shape: Any, m: int, j: int, feature: int
) -> None:
    """Bring line j, which is that of `feature`, up to date.

    If the sketch's random rows are drawn by need, and this is the first use, they are drawn.
    """
    if scale[()] > 0.0 and zw[j, zw.shape[1] - 1] == 0.0:
        for i in range(m):
            zw[j, i] = scale[()] * normal(seed[()], (i << 32) + feature)
        first_use(maps, zw, j)
    refresh(maps, zw, j, m + 1, m + 1, shape)


@jit
def bring_lines(params: Any, s: Any, features: Array) -> None:
    """Bring lines up to date that were copied from those of these features, in order."""
    for j in range(features.size):
        bring_line(
            s.zw, s.maps, s.scale, s.seed, params.shape, params.sketch_size, j, int(features[j])
        )


@inlined
def new_lines(W: int) -> int:
    """Where in `a` the number of the row's lines is that were never used."""
    return (Z + 1) * W - 1


@jit
def inspect(params: Any, s: Any, idx: Array, val: Array) -> tuple[float, float]:
    """The prediction uᵀx before it is bounded, and ‖x‖², of the row (idx, val).

    Leaves Zx and p = Vx, the row as the sketch sees it, in the scratch.
    """
    m, W = params.sketch_size, len(params.shape)
    n2 = gather_current(
        s.zw, params.shape, idx, val, row_at(s.a, Z * W, params.shape), current_epoch(s.maps)
    )
    if n2 < 0.0 or (s.scale[()] > 0.0 and s.a[new_lines(W)] > 0.0):
        bring(s.zw, s.maps, s.scale, s.seed, params.shape, m, idx)
        n2 = gather(s.zw, params.shape, idx, val, row_at(s.a, Z * W, params.shape))
        s.a[new_lines(W)] = 0.0
    p, beta = row_at(s.a, P * W, params.shape), row_at(s.a, BETA * W, params.shape)
    # F is zero beyond its first m rows and columns
    times(row_at(s.a, F * W, params.shape), row_at(s.a, Z * W, params.shape), p, params.shape)
    return s.a[Z * W + m] + line_dot(beta, p, params.shape), n2  # w̄ᵀx + βᵀVx


@inlined
def columns_of(params: Any, s: Any) -> tuple[Array, int, int]:
    """The table, and where in its lines w̄ and D are."""
    return s.zw, params.sketch_size, params.sketch_size + 1


@inlined
def residual_of(params: Any, s: Any, n2: float) -> float:
    """ρ² = ‖x‖² − ‖Vx‖², what the sketch's rows leave of the row's square norm."""
    W = len(params.shape)
    p = row_at(s.a, P * W, params.shape)
    return max(n2 - line_dot(p, p, params.shape), 0.0)


@inlined
def project(params: Any, s: Any, excess: float, residual: float) -> float:
    """Line 5: γ_p = τ_C(uᵀx)/(αxᵀA⁻¹x), w ← u − γ_p(x − VᵀDVx). Returns −γ_p, w̄'s
    component of x.
    """
    a, W = s.a, len(params.shape)
    # αxᵀA⁻¹x, without cancellation (S12)
    p, rest = row_at(a, P * W, params.shape), row_at(a, I_MINUS_D * W, params.shape)
    xAx = residual + line_dot3(rest, p, p, params.shape)
    w_coef = -excess / xAx
    for i in range(W):
        a[BETA * W + i] -= w_coef * a[D * W + i] * a[P * W + i]
    return w_coef


@jit
def start_row(a: Array, W: int, f: int, n2: float, residual: float) -> None:
    """Row f of V becomes what the sketch leaves of x, ρ⁻¹(x − Vᵀp) with ρ² = `residual`: Z's new
    row is x/ρ, F's is −pᵀF/ρ and a 1 (S10).

    Fills the scratch as if the row had been there when x came. ρ² is a difference: what V lacks of
    orthonormality is multiplied by ‖x‖²/ρ².
    """
    rho = math.sqrt(residual)
    for k in range(f):
        total = 0.0
        for i in range(f):
            total += a[P * W + i] * a[(F + i) * W + k]
        a[(F + f) * W + k] = -total / rho
    a[(F + f) * W + f] = 1.0
    a[Z * W + f] = n2 / rho
    a[P * W + f] = rho


@jit
def write_row(
    zw: Array, a: Array, maps: Maps, shape: Any, idx: Array, val: Array, row: int, residual: float
) -> None:
    """Z's row that has started: x/ρ. All features that it has are the row's, and none has a number
    there yet.
    """
    W = len(shape)
    for k in range(W):
        a[COEF * W + k] = 0.0
    a[COEF * W + row] = 1.0 / math.sqrt(residual)
    scatter_lines(maps, zw, shape, idx, val, row_at(a, COEF * W, shape), 1)


@inlined
def keep_eigenvalue(a: Array, W: int, i: int, alpha: float, tlam: float) -> float:
    """Store (tΛ)_i, and I − D and D, which follow from it. Returns D_ii."""
    share = 1.0 / (alpha + tlam)
    a[TLAM * W + i] = tlam
    a[I_MINUS_D * W + i] = alpha * share
    a[D * W + i] = tlam * share
    return tlam * share


@inlined
def forget(a: Array, W: int, alpha: float, decay: float) -> None:
    """What `orthonormalise` does in a round without a gradient: tΛ ← decay·tΛ."""
    for i in range(W):
        keep_eigenvalue(a, W, i, alpha, decay * a[TLAM * W + i])


@inlined
def orthonormalise(
    a: Array,
    shape: Any,
    m: int,
    alpha: float,
    c: float,
    decay: float,
    gain: float,
    kappa: float,
    gradient: float,
) -> None:
    """Oja's step and its orthonormalisation, but for Z: Algorithm 5, lines 1 and 4.

    tΛ ← decay·tΛ + gain·p². F ← L⁻¹F makes the rows of V orthonormal: LLᵀ = I + κ q qᵀ is known in
    closed form from s_i = s_{i−1} + κ q_i², s_0 = 1 (S2, S12). The new Vx is its old value times
    1 + γ‖ĝ‖². With V goes Algorithm 4, line 9, as S9 has it: β ← Lᵀβ + (ℓ'/α)·DVx with the new D
    and V, where `gradient` is (1 + γ‖ĝ‖²)·ℓ'/α.
    """
    W = len(shape)
    kappa_c2 = kappa * c * c
    # All numbers alike, so that they are computed side by side; beyond m they hold ones and zeros.
    px = row_at(a, P * W, shape)
    sums_before(px, px, row_at(a, ENERGY * W, shape), shape)
    sums_after(px, row_at(a, BETA * W, shape), row_at(a, MARGIN * W, shape), shape)
    for i in range(W):
        p = a[P * W + i]
        tlam = decay * a[TLAM * W + i] + gain * p * p
        own_D = keep_eigenvalue(a, W, i, alpha, tlam)
        a[Q * W + i] = c * p
        before = 1.0 + kappa_c2 * a[ENERGY * W + i]
        after = before + kappa_c2 * p * p
        inverse = 1.0 / math.sqrt(before * after)
        a[OWN * W + i] = before * inverse
        a[EARLIER * W + i] = kappa * c * p * inverse
        # L_ii β_i + Σ_{j>i} L_ji β_j + (ℓ'/α) D V_new x
        a[BETA * W + i] = (
            after * a[BETA * W + i] + kappa_c2 * p * a[MARGIN * W + i] + gradient * own_D * p
        ) * inverse
    own, earlier = row_at(a, OWN * W, shape), row_at(a, EARLIER * W, shape)
    substitute(row_at(a, F * W, shape), m, own, earlier, row_at(a, Q * W, shape), shape)


@inlined
def add_densely(params: Any, s: Any, idx: Array, val: Array, factor: float) -> None:
    """Z ← L⁻¹(V + γ q ĝᵀ) after `orthonormalise`: row i is that of L⁻¹V and γ q_i ĝ/√(s_{i−1} s_i),
    so that no digit of V is lost, however large ĝ is. `factor` is c/(2 + γ‖ĝ‖²).
    """
    a, m, W = s.a, params.sketch_size, len(params.shape)
    for k in range(W):
        a[COEF * W + k] = 0.0
    for i in range(m):
        a[COEF * W + i] = factor * a[EARLIER * W + i]
        a[COEF * W + m] += a[BETA * W + i] * a[COEF * W + i]
    fold(s.zw, a, s.maps, s.scale, s.seed, params.shape, m)
    bring(s.zw, s.maps, s.scale, s.seed, params.shape, m, idx)
    scatter(s.zw, params.shape, idx, val, row_at(a, COEF * W, params.shape))


@jit
def settle(a: Array, m: int, W: int) -> None:
    """w̄ ← w̄ + Vᵀβ, β ← 0, of which the fold of this round takes care: before a dense round would
    make β, and w̄ against it, very large.
    """
    for k in range(m):
        for i in range(m):
            a[SETTLED * W + k] += a[BETA * W + i] * a[(F + i) * W + k]
    for i in range(m):
        a[BETA * W + i] = 0.0


@jit
def fold(zw: Array, a: Array, maps: Maps, scale: Array, seed: Array, shape: Any, m: int) -> None:
    """Z ← FZ, F ← I, w̄ ← w̄ + Vᵀβ, β ← 0, at rounds decided by the state (S4)."""
    W = len(shape)
    settle(a, m, W)
    own = map_at(maps, m + 1, m + 1, W)
    for k in range(m):
        for i in range(m):
            maps.lines[own + k * W + i] = a[(F + i) * W + k]
            a[(F + i) * W + k] = 1.0 if i == k else 0.0
        maps.lines[own + k * W + m] = a[SETTLED * W + k]
        maps.lines[own + m * W + k] = 0.0
        a[SETTLED * W + k] = 0.0
    maps.lines[own + m * W + m] = 1.0
    if scale[()] > 0.0 and maps.counts[EPOCH] + 1 == maps.counts[PERIOD]:
        for j in range(zw.shape[0]):  # draw all that is left, before the period's maps are dropped
            bring_line(zw, maps, scale, seed, shape, m, j, j)
    end_epoch(maps, zw, m + 1, m + 1, shape)


@jit
def clean(zw: Array, a: Array, maps: Maps, shape: Any, m: int) -> None:
    """Make V's rows orthonormal after a fold, when Z is V: F ← L⁻¹ with LLᵀ = VVᵀ.

    This passes over all features that were used. A row in the span of those before it becomes zero.
    V has to be nearly orthonormal: rounding errors are multiplied by the square of its condition
    number.
    """
    W = len(shape)
    square = a[F * W :].reshape(W, W)
    refresh_used(maps, zw, m + 1, m + 1, shape)
    for i in range(m):
        square[i, i] = 0.0
    for at in range(maps.counts[USED]):
        for k in range(m):
            a[COEF * W + k] = zw[maps.used[at], k]
        a[COEF * W + m] = 0.0
        column = row_at(a, COEF * W, shape)
        add_outer(row_at(a, F * W, shape), m, column, column, shape)
    invert_factor(square, m)


@jit
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
