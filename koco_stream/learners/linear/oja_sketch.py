"""Oja's sketch: V's m orthonormal rows and the eigenvalues tΛ, with w = w̄ + Vᵀβ (docs/errata.md,
S9). Algorithm 5 of Luo et al. (2016), and what Algorithm 1 asks of a sketch.

V = FZ (oja_basis.py). Z and w̄ lie side by side, one row of the table a feature, so a round reads
and writes each of its features once (S3). Every formula is written without cancellation (S12).
"""

import math
from typing import Any, NamedTuple

from koco_stream.learners.linear import oja_basis as basis
from koco_stream.learners.linear.oja_basis import Vectors
from koco_stream.learners.linear.online_newton import Diagnostics, Feeding
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import (
    gather,
    gather_current,
    line_dot,
    line_dot3,
    named_rows,
    scatter,
    substitute,
    sums_after,
    sums_before,
    times,
)
from koco_stream.numerics.lazy_maps import Maps, current_epoch, scatter_first_time
from koco_stream.types import Array

FOLD_AT = 1e2  # fold when the bound on F⁻¹'s largest entry passes this (S4)
CANCELS_AT = 1e7  # fold when w̄ᵀx is this many C, so that w̄ and Vᵀβ are not kept against each other
DENSE_AT = 1e3  # a round is dense if the sketch's Gram determinant grows by more than this (S12)
CLEAN_AT = 2.0  # V is made orthonormal again when started rows multiply its rounding by more
NEW_ROW_AT = (
    1e-6  # a gradient starts a row if a larger share of its square is outside the sketch (S10)
)


class State(NamedTuple):
    """t: () rounds. found: () rows of the sketch that have started. table: (d, W), row j = Z's
    column j (m numbers), then w̄_j, then D_jj if `diagonal`, then padding; last the epoch. small:
    the `Vectors`. F: (W, W), zero beyond its first m rows and columns. maps: the folds that are to
    be applied to rows of the table. growth: () bound on F⁻¹. orthonormality_error: () bound on what
    V lacks of orthonormality, in roundings. scale, seed: () of a random start that is drawn by
    need; scale is 0 otherwise. fed: how rows are fed.
    """

    t: Array
    found: Array
    table: Array
    small: Array
    F: Array
    maps: Maps
    growth: Array
    orthonormality_error: Array
    scale: Array
    seed: Array
    fed: Feeding
    diagnostics: Diagnostics

    @jit
    def inspect(s: Any, params: Any, idx: Array, x: Array) -> tuple[float, float]:
        """Algorithm 1, line 5: uᵀx and ‖x‖² of the row (idx, x); z = Zx and p = Vx."""
        v, now = named_rows(Vectors, s.small, params.shape), current_epoch(s.maps)
        n2 = gather_current(s.table, params.shape, idx, x, v.z, now)
        unseen = len(params.shape) - 1
        if n2 < 0.0 or (s.scale[()] > 0.0 and v.z[unseen] > 0.0):
            basis.materialise_row(params, s, idx)
            n2 = gather(s.table, params.shape, idx, x, v.z)
            v.z[unseen] = 0.0
        times(s.F, v.z, v.p, params.shape)
        return v.z[params.sketch_size] + line_dot(v.beta, v.p, params.shape), n2

    @jit
    def residual(s: Any, params: Any, idx: Array, x: Array, n2: float) -> float:
        """ρ² = ‖x‖² − ‖Vx‖², what the sketch's rows leave of the row's square norm."""
        p = named_rows(Vectors, s.small, params.shape).p
        return max(n2 - line_dot(p, p, params.shape), 0.0)

    @inlined
    def ridge(s: Any, params: Any) -> float:
        """α."""
        return params.alpha

    @jit
    def project(s: Any, params: Any, excess: float, residual: float) -> float:
        """Algorithm 1, line 5: γ_p = τ_C(uᵀx)/(αxᵀA⁻¹x), w ← u − γ_p(x − VᵀDVx). Returns −γ_p."""
        v = named_rows(Vectors, s.small, params.shape)
        # αxᵀA⁻¹x, without cancellation (S12)
        w_x = -excess / (residual + line_dot3(v.I_minus_D, v.p, v.p, params.shape))
        for i in range(len(params.shape)):
            v.beta[i] -= w_x * v.D[i] * v.p[i]
        return w_x

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
        """Algorithm 1, lines 8 and 9: Algorithm 5, and u ← w − A⁻¹g."""
        v, m, t = named_rows(Vectors, s.small, params.shape), params.sketch_size, s.t[()]
        started = -1
        if s.found[()] < m and c != 0.0 and residual > NEW_ROW_AT * n2:
            started = basis.start_row(params, s, n2, residual)
        # One γ stands for the matrix Γ_t. Λ is kept as tΛ.
        gamma = min(float(params.rate / t), 1.0)
        decay = (1.0 - gamma) * t / (t - 1.0) if t > 1 else 0.0
        if slope == 0.0:  # g = 0: only Λ changes, and w̄ where it was projected
            decay_eigenvalues(params, v, decay)
            add_to_table(params, s, v, idx, x, 0.0, w_x, -1, 0.0)
            return
        c2n2 = c * c * n2  # ‖ĝ‖²
        kappa = gamma * (2.0 + gamma * c2n2)
        grown = 1.0 + kappa * c * c * line_dot(v.p, v.p, params.shape)  # det(L)²
        dense = grown > DENSE_AT
        # w̄ᵀx is still at z's end: βᵀVx cancels it
        cancels = abs(v.z[m]) > CANCELS_AT * params.clip
        if dense:
            basis.flush(params, s)
        elif cancels or s.growth[()] * math.sqrt(grown) > FOLD_AT:
            if started >= 0:  # the fold maps all of Z: its new row has to be there
                basis.write_row(params, s, idx, x, started, residual)
                started = -1
            basis.fold(params, s)
            basis.materialise_row(params, s, idx)
            for k in range(m):
                v.z[k] = v.p[k]  # now Z = V
        s.growth[()] *= math.sqrt(grown)
        # Algorithm 4, line 9: w̄ ← w̄ − g/α − (δᵀb)ĝ, where δᵀb = γqᵀβ (S9).
        w_x -= gamma * c * c * line_dot(v.p, v.beta, params.shape) + slope / params.alpha
        # Line 3 comes before lines 1 and 4, so that memory is written while these are computed.
        of_z = 0.0 if dense else gamma * c * c
        add_to_table(params, s, v, idx, x, of_z, w_x, started, residual)
        gradient = (1.0 + gamma * c2n2) * slope / params.alpha
        orthonormalise(params, s, v, c, decay, gamma * t * c * c, kappa, gradient)
        if dense:
            basis.add_densely(params, s, idx, x, c / (2.0 + gamma * c2n2))
        if s.orthonormality_error[()] > CLEAN_AT:
            if not dense:
                basis.fold(params, s)
            basis.clean(params, s)


@inlined
def add_to_table(
    params: Any,
    s: State,
    v: Vectors,
    idx: Array,
    x: Array,
    of_z: float,
    w_x: float,
    started: int,
    residual: float,
) -> None:
    """Algorithm 5, line 3: Z ← Z + δĝᵀ with δĝᵀ = γc²(Zx)xᵀ, γc² = `of_z` (S1), and w̄ ← w̄ + w_x·x.
    A row of Z that has `started` is x/√`residual`.
    """
    m = params.sketch_size
    for k in range(len(params.shape)):
        v.coefficients[k] = of_z * v.z[k] if k < m and of_z != 0.0 else 0.0
    v.coefficients[m] = w_x
    if started >= 0:
        v.coefficients[started] += 1.0 / math.sqrt(residual)
    if v.z[len(params.shape) - 1] == 0.0:
        scatter(s.table, params.shape, idx, x, v.coefficients)
    else:  # of features that were never seen
        scatter_first_time(s.maps, s.table, params.shape, idx, x, v.coefficients)


@inlined
def set_eigenvalue(params: Any, v: Vectors, i: int, tlam: float) -> float:
    """Algorithm 5, line 1: (tΛ)_i, and I − D and D, which follow from it. Returns D_ii."""
    share = 1.0 / (params.alpha + tlam)
    v.tlam[i] = tlam
    v.I_minus_D[i] = params.alpha * share
    v.D[i] = tlam * share
    return tlam * share


@inlined
def decay_eigenvalues(params: Any, v: Vectors, decay: float) -> None:
    """Algorithm 5, line 1, in a round without a gradient: tΛ ← decay·tΛ."""
    for i in range(len(params.shape)):
        set_eigenvalue(params, v, i, decay * v.tlam[i])


@inlined
def orthonormalise(
    params: Any,
    s: State,
    v: Vectors,
    c: float,
    decay: float,
    gain: float,
    kappa: float,
    gradient: float,
) -> None:
    """Algorithm 5, lines 1, 2 and 4: Λ ← (1 − γ)Λ + γ diag(q)² with q = Vĝ = cp, as tΛ ← decay·tΛ +
    gain·p², and V ← L⁻¹(V + γ q ĝᵀ) as F ← L⁻¹F, where LLᵀ = I + κ q qᵀ.

    L is known in closed form from s_i = s_{i−1} + κ q_i², s_0 = 1 (S2, S12). The new Vx is its old
    value times 1 + γ‖ĝ‖². With V goes Algorithm 4, line 9, as S9 has it: β ← Lᵀβ + (ℓ'/α)·DVx with
    the new D and V, where `gradient` is (1 + γ‖ĝ‖²)·ℓ'/α.
    """
    kappa_c2 = kappa * c * c
    # All numbers alike, so that they are computed side by side; beyond m they hold ones and zeros.
    sums_before(v.p, v.p, v.before, params.shape)
    sums_after(v.p, v.beta, v.after, params.shape)
    for i in range(len(params.shape)):
        p = v.p[i]
        D = set_eigenvalue(params, v, i, decay * v.tlam[i] + gain * p * p)
        v.q[i] = c * p
        before = 1.0 + kappa_c2 * v.before[i]
        after = before + kappa_c2 * p * p
        inverse = 1.0 / math.sqrt(before * after)
        v.own[i] = before * inverse
        v.earlier[i] = kappa * c * p * inverse
        # L_ii β_i + Σ_{j>i} L_ji β_j + (ℓ'/α) D V_new x
        v.beta[i] = (after * v.beta[i] + kappa_c2 * p * v.after[i] + gradient * D * p) * inverse
    substitute(s.F, params.sketch_size, v.own, v.earlier, v.q, params.shape)
