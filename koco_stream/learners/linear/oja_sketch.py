"""Oja's sketch as Oja-SON keeps it: V = FZ, with w = w̄ + Vᵀβ beside it (docs/errata.md, S9).

V's rows are orthonormal, and Z changes only where a row is non-zero. Z and w̄ are the table `zw` (d,
…), line j = column j of Z (m numbers), then w̄_j. The small vectors and F lie in one flat array `a`;
`a[P * W + i]` is p_i, where W is the width of a line (koco_stream.numerics.llvm.feature_lines).
"""

import math
from typing import Any

from koco_stream.learners.spec import Parameter
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.llvm.feature_lines import (
    gather,
    line_dot,
    line_dot3,
    scatter,
    substitute,
    sums_after,
    sums_before,
    times,
)
from koco_stream.types import Array

SKETCH_RATE = Parameter(
    "sketch_rate", float, "c in the sketch's rate min(c/t, 1)", low=0, above=True
)
# At the printed rate the first gradients err less on 37 of 65 streams, random rows on 11
# (docs/sketch-start.md); and they cost less.
SKETCH_START = Parameter(
    "sketch_start",
    str,
    "how the sketch starts: from the first gradients, or from random rows",
    choices=("random", "gradients"),
)

# Vectors in `a`, each (W,). State: BETA β; TLAM tΛ; I_MINUS_D and D, where D = tΛ/(α + tΛ) = tΛH
# with the paper's H, and I − D = αH. Scratch, meaningless between rounds: Z is Zx; P p = Vx; ENERGY
# Σ_{j<i} p_j²; MARGIN Σ_{j>i} p_j β_j; COEF what x adds to its features' lines; Q q = Vĝ; OWN and
# EARLIER the factors by which L⁻¹ takes a row's own and the earlier rows' numbers. Then F, (W, W).
BETA, TLAM, I_MINUS_D, D, Z, P, ENERGY, MARGIN, COEF, Q, OWN, EARLIER, F = range(13)

IN_THE_SPAN = 1e-12  # a smaller remaining share of a column's square norm is rounding


@jit
def inspect(params: Any, s: Any, idx: Array, val: Array) -> tuple[float, float]:
    """The prediction uᵀx before it is bounded, and ‖x‖², of the row (idx, val).

    Leaves Zx and p = Vx, the row as the sketch sees it, in the scratch.
    """
    m, W = params.sketch_size, len(params.shape)
    n2 = gather(s.zw, params.shape, idx, val, s.a, Z * W)
    times(s.a, params.shape, F * W, Z * W, P * W)  # F is zero beyond its first m rows and columns
    return s.a[Z * W + m] + line_dot(s.a, params.shape, BETA * W, P * W), n2  # w̄ᵀx + βᵀVx


@inlined
def columns_of(params: Any, s: Any) -> tuple[Array, int, int]:
    """The table, and where in its lines w̄ and D are."""
    return s.zw, params.sketch_size, params.sketch_size + 1


@inlined
def residual_of(params: Any, s: Any, n2: float) -> float:
    """ρ² = ‖x‖² − ‖Vx‖², what the sketch's rows leave of the row's square norm."""
    W = len(params.shape)
    return max(n2 - line_dot(s.a, params.shape, P * W, P * W), 0.0)


@inlined
def project(params: Any, s: Any, excess: float, residual: float) -> float:
    """Line 5: γ_p = τ_C(uᵀx)/(αxᵀA⁻¹x), w ← u − γ_p(x − VᵀDVx). Returns −γ_p, w̄'s
    component of x.
    """
    a, W = s.a, len(params.shape)
    # αxᵀA⁻¹x, without cancellation (S12)
    xAx = residual + line_dot3(a, params.shape, I_MINUS_D * W, P * W, P * W)
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
    zw: Array, a: Array, shape: Any, idx: Array, val: Array, row: int, residual: float
) -> None:
    """Z's row that has started: x/ρ. All features that it has are the row's, and none has a number
    there yet.
    """
    W = len(shape)
    for k in range(W):
        a[COEF * W + k] = 0.0
    a[COEF * W + row] = 1.0 / math.sqrt(residual)
    scatter(zw, shape, idx, val, a, COEF * W)


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
    sums_before(a, shape, P * W, P * W, ENERGY * W)
    sums_after(a, shape, P * W, BETA * W, MARGIN * W)
    for i in range(W):
        p = a[P * W + i]
        tlam = decay * a[TLAM * W + i] + gain * p * p
        share = 1.0 / (alpha + tlam)
        a[TLAM * W + i] = tlam
        a[I_MINUS_D * W + i] = alpha * share
        a[D * W + i] = tlam * share
        a[Q * W + i] = c * p
        before = 1.0 + kappa_c2 * a[ENERGY * W + i]
        after = before + kappa_c2 * p * p
        inverse = 1.0 / math.sqrt(before * after)
        a[OWN * W + i] = before * inverse
        a[EARLIER * W + i] = kappa * c * p * inverse
        # L_ii β_i + Σ_{j>i} L_ji β_j + (ℓ'/α) D V_new x
        a[BETA * W + i] = (
            after * a[BETA * W + i]
            + kappa_c2 * p * a[MARGIN * W + i]
            + gradient * (tlam * share) * p
        ) * inverse
    substitute(a, shape, m, F * W, OWN * W, EARLIER * W, Q * W)


@inlined
def add_densely(
    zw: Array, a: Array, shape: Any, m: int, idx: Array, val: Array, factor: float
) -> None:
    """Z ← L⁻¹(V + γ q ĝᵀ) after `orthonormalise`: row i is that of L⁻¹V and γ q_i ĝ/√(s_{i−1} s_i),
    so that no digit of V is lost, however large ĝ is. `factor` is c/(2 + γ‖ĝ‖²).
    """
    W = len(shape)
    merge(zw, a, m, W)
    on_x = 0.0
    for i in range(m):
        a[COEF * W + i] = factor * a[EARLIER * W + i]
        on_x += a[BETA * W + i] * a[COEF * W + i]
    a[COEF * W + m] = on_x
    scatter(zw, shape, idx, val, a, COEF * W)
    clean(zw, a, m, W)


@jit
def settle(zw: Array, a: Array, m: int, W: int) -> None:
    """w̄ ← w̄ + Vᵀβ, β ← 0: before a round that would make β, and w̄ against it, very large."""
    on_z, beta, f = a[OWN * W :], a[BETA * W :], a[F * W :].reshape(W, W)
    for k in range(m):
        on_z[k] = 0.0
        for i in range(m):
            on_z[k] += beta[i] * f[i, k]
    for j in range(zw.shape[0]):
        w = zw[j, m]
        for k in range(m):
            w += on_z[k] * zw[j, k]
        zw[j, m] = w
    for i in range(m):
        beta[i] = 0.0


@jit
def fold(zw: Array, a: Array, m: int, W: int) -> None:
    """Z ← FZ, F ← I, w̄ ← w̄ + Vᵀβ, β ← 0, and a clean-up of V's rows: O(m²d), at rounds decided by
    the state (S4).
    """
    merge(zw, a, m, W)
    clean(zw, a, m, W)


@jit
def merge(zw: Array, a: Array, m: int, W: int) -> None:
    """Z ← FZ, w̄ ← w̄ + Zᵀβ with the new Z.

    F is transposed meanwhile, so that a line's numbers are computed side by side. For that, its
    index has two numbers here: the compiler takes it that a sum of products could be negative.
    """
    line, beta, f = a[OWN * W :], a[BETA * W :], a[F * W :].reshape(W, W)
    transpose(f)
    for j in range(zw.shape[0]):
        line[:m] = 0.0
        for k in range(m):
            z = zw[j, k]
            for i in range(m):
                line[i] += f[k, i] * z
        w = zw[j, m]
        for i in range(m):
            zw[j, i] = line[i]
            w += beta[i] * line[i]
        zw[j, m] = w
    transpose(f)


@jit
def transpose(square: Array) -> None:
    """Overwrite a square matrix by its transpose."""
    for i in range(square.shape[0]):
        for k in range(i):
            square[i, k], square[k, i] = square[k, i], square[i, k]


@jit
def clean(zw: Array, a: Array, m: int, W: int) -> None:
    """Gram–Schmidt on Z's rows, which are V's now; F ← I, β ← 0."""
    beta, f = a[BETA * W :], a[F * W :].reshape(W, W)
    reorthonormalise(zw, m, f)
    for i in range(m):
        beta[i] = 0.0
        for k in range(m):
            f[i, k] = 1.0 if i == k else 0.0


@jit
def reorthonormalise(table: Array, m: int, factor: Array) -> None:
    """Orthonormalise the first m columns of `table` (d, …) in place, in two sweeps over it.

    V ← L⁻¹V with LLᵀ = VVᵀ. A column in the span of those before it becomes zero. `factor` (at
    least m, at least m) is scratch. V has to be nearly orthonormal: rounding errors are multiplied
    by the square of its condition number.
    """
    d = table.shape[0]
    for i in range(m):
        for k in range(i + 1):
            factor[i, k] = 0.0
    for j in range(d):
        for i in range(m):
            v = table[j, i]
            for k in range(i + 1):
                factor[i, k] += table[j, k] * v
    for i in range(m):
        original = factor[i, i]
        for k in range(i + 1):
            total = factor[i, k]
            for n in range(k):
                total -= factor[i, n] * factor[k, n]
            if k < i:
                # The diagonal stores 1/L_kk.
                factor[i, k] = total * factor[k, k]
            else:
                independent = total > IN_THE_SPAN * original
                factor[i, i] = 1.0 / math.sqrt(total) if independent else 0.0
    for j in range(d):
        for i in range(m):
            v = table[j, i]
            for k in range(i):
                v -= factor[i, k] * table[j, k]
            table[j, i] = v * factor[i, i]
