"""Frequent directions with a buffer: the sketch of FD-SON, RFD-SON, S-AdaGrad and Ada-FD.

S has up to m kept rows, which are orthogonal, and up to b raw ones since the last shrink. A
function of SᵀS = Qᵀ diag(λ) Q is applied to a vector in O(m²) and the row's own features. The table
has, for each feature, its column of R, whose rows span those of S, and Q = MR. A to-sketch vector ĝ
= cx brings one raw row, unless it lies in Q to rounding, and changes λ and M as a rank-one change
does (koco_stream.numerics.rank_one). The raw row is x over the length of what of it lies outside Q,
or, where that is so little that x hides it, what lies outside Q itself, feature by feature.

`lazy`, for the inverse alone, which needs no eigenvectors between shrinks: R is S, and Q = L⁻¹S
with LLᵀ = αI + SSᵀ, so that A⁻¹ = (I − QᵀQ)/α. The eigenvectors of SSᵀ are found when S shrinks.

The b-th gradient since the last shrink shrinks the sketch: λ ← λ − λ_{m+1}, the first m rows of M
become the map of this epoch (koco_stream.numerics.lazy_maps), and M becomes diagonal. The weights
are R̄ᵀβ, where R̄ has one row more than R, w̄, whose β is 1.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.learners.linear.fd_basis import (
    Vectors,
    add_row,
    add_weights,
    map_size,
    refined,
    rows_of,
    shrink,
    shrunk,
)
from koco_stream.learners.linear.online_newton import Diagnostics, Feeding, feeding, no_diagnostics
from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import (
    aligned_zeros,
    gather,
    gather_current,
    line_dot,
    named_rows,
    times,
)
from koco_stream.numerics.lazy_maps import (
    BLOCK,
    Maps,
    current_epoch,
    empty_maps,
    end_epoch,
    is_current,
    maps_floats,
    refresh,
    scatter_columns,
)
from koco_stream.numerics.rank_one import scratch_rows
from koco_stream.types import Array

MOST_SHRINKS = 2048  # after which all columns are brought up to date
# Below this share of ‖x‖², what is outside Q is computed feature by feature, since the digits of
# ‖x‖² − ‖Qx‖² are too few: with at most so many features; and with more, of which all used ones
# would be passed over, unless the difference itself is no more than rounding.
FEW, REFINE_AT, REFINE_OF_MANY_AT, ROUNDING_OF_MANY = 1024, 1e-2, 1e-6, 1e-14
NEW_AT = 1e-24  # the share from which on x is a new direction: (10⁻¹²)², some thousand roundings


class State(NamedTuple):
    """t: () rounds. kept, filled: () kept and raw rows of R. gradients: () since the last shrink.
    exact: () whether what of the row lies outside Q is in `rest`, (d,) scratch, of which w̄ gets
    `of_rest` times, (). alpha: () α. fed: how rows are fed. table: (d, W), row j =
    the kept rows' column j (m numbers), w̄_j, the raw rows' column j (b numbers), D_jj if
    `diagonal`; last the column's epoch. small: `Vectors`. M: (W, W). gram: SSᵀ if `lazy`, else
    scratch of rank-one changes. maps: the shrinks to be applied to columns.
    """

    t: Array
    kept: Array
    filled: Array
    gradients: Array
    exact: Array
    of_rest: Array
    alpha: Array
    rest: Array
    fed: Feeding
    table: Array
    small: Array
    M: Array
    gram: Array
    maps: Maps
    diagnostics: Diagnostics

    @jit
    def inspect(s: Any, params: Any, idx: Array, x: Array) -> tuple[float, float]:
        """uᵀx and ‖x‖² of the row (idx, x), whose columns it brings up to date, and R̄x."""
        v = named_rows(Vectors, s.small, params.shape)
        n2 = gather_current(s.table, params.shape, idx, x, v.line, current_epoch(s.maps))
        if n2 < 0.0:
            for i in range(idx.size):
                if not is_current(s.maps, s.table, idx[i]):
                    refresh(s.maps, s.table, np.int64(idx[i]), params.out_shape)
            n2 = gather(s.table, params.shape, idx, x, v.line)
            v.line[len(params.shape) - 1] = 0.0
        return line_dot(v.line, v.beta, params.shape), n2

    @jit
    def residual(s: Any, params: Any, idx: Array, x: Array, n2: float) -> float:
        """What of ‖x‖² lies outside Q, 0 if that is rounding; with `lazy`, αxᵀA⁻¹x. And z = Qx."""
        v, alpha, trace = named_rows(Vectors, s.small, params.shape), s.alpha[()], 0.0
        times(s.M, v.line, v.z, params.shape)
        outside, many = n2 - line_dot(v.z, v.z, params.shape), s.rest.size > FEW
        s.exact[()] = 0
        if outside > (REFINE_OF_MANY_AT if many else REFINE_AT) * n2:
            return outside
        if params.lazy:  # never less than what the largest possible eigenvalue of A leaves of it
            for i in range(rows_of(s)):
                trace += v.values[i]
            return max(outside, n2 * alpha / (alpha + trace))
        if many and outside <= ROUNDING_OF_MANY * n2:
            return 0.0
        s.exact[()] = 1
        outside = refined(params, s, v, idx, x)
        return outside if not outside <= NEW_AT * n2 else 0.0

    @jit
    def project(s: Any, params: Any, excess: float, residual: float) -> float:
        """w ← u − γA⁻¹x, γ = excess/(xᵀA⁻¹x), but for w̄'s multiple of x, which is returned.

        Where A is singular this is the limit of smaller and smaller ridges: w differs from u by
        what A does not weigh, if x has a part there. With `lazy`, A⁻¹x is what Q leaves of x.
        """
        v, n, alpha = named_rows(Vectors, s.small, params.shape), rows_of(s), s.alpha[()]
        only_outside = params.lazy or (alpha == 0.0 and residual > 0.0)
        f_0 = 1.0 if only_outside else of_eigenvalue(params, 0.0, alpha)
        of_x = 0.0 if s.exact[()] else f_0  # what all of x is multiplied by; taken back inside
        product = f_0 * residual
        for i in range(n):
            f = 0.0 if only_outside else of_eigenvalue(params, v.values[i], alpha)
            product += f * v.z[i] * v.z[i]
            v.each[i] = (f - of_x) * v.z[i]
        for i in range(n):
            v.each[i] *= -excess / product
        add_weights(params, s, v)
        s.of_rest[()] = -excess / product * (f_0 - of_x)
        return -excess / product * of_x

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
        """Lines 8 and 9: SᵀS ← SᵀS + ĝĝᵀ, shrunk if the buffer is full; u ← w − step·f(SᵀS)g."""
        v, m = named_rows(Vectors, s.small, params.shape), params.sketch_size
        exact, raw = s.exact[()] > 0 and residual > 0.0, m + 1 + s.filled[()]
        for k in range(len(params.shape)):
            v.change[k] = 0.0
        if c != 0.0:
            add_row(params, s, v, c, residual, n2)
        shrinks, rho, kept = s.gradients[()] == params.buffer, 0.0, rows_of(s)
        if shrinks:
            rho, kept = shrunk(params, s, v)
        alpha, unweighed = s.alpha[()], params.lazy and not shrinks
        f_0, step = of_eigenvalue(params, 0.0, alpha), params.step_size * slope
        # What a shrink leaves out is multiplied by f(0), and where features are many, what was too
        # little to be told from rounding: all of x then, which is taken back inside.
        of_x = f_0 if params.lazy or c == 0.0 or not (residual > 0.0 or s.exact[()]) else 0.0
        for i in range(rows_of(s)):
            f = 0.0 if unweighed else f_0
            if i < kept and not unweighed:
                f = of_eigenvalue(params, v.values[i] - rho, alpha)
            v.each[i] = -step * (f - of_x) * v.z[i]
        add_weights(params, s, v)
        if shrinks:
            shrink(params, s, v, rho, kept)
        new, v.change[m] = v.line[len(params.shape) - 1], w_x - step * of_x
        scatter_columns(s.maps, s.table, params.shape, idx, x, v.change, new)
        if exact:
            write_rest(params, s, raw, 1.0 / math.sqrt(residual) if c != 0.0 else 0.0)
        s.of_rest[()] = 0.0
        if shrinks:
            s.diagnostics.folds[()] += end_epoch(s.maps, s.table, params.out_shape)

    @inlined
    def ridge(s: Any, params: Any) -> float:
        """1/(step·f(0))."""
        step = params.step_size * of_eigenvalue(params, 0.0, s.alpha[()])
        return 1.0 / step if step > 0.0 else math.inf


def init(params: Any, n_features: int, seed: int) -> State:
    """w = 0, S = 0. Nothing is drawn: `seed` is not used."""
    m, W, (n_in, n_out) = params.sketch_size, len(params.shape), map_size(params)
    rows = n_in - 1
    state = State(
        **{name: np.zeros((), np.int64) for name in ("t", "kept", "filled", "gradients", "exact")},
        of_rest=np.zeros(()),
        alpha=np.array(params.alpha),
        rest=np.zeros(0 if params.lazy else n_features),
        fed=feeding(params, n_features),
        table=aligned_zeros(n_features, W),
        small=aligned_zeros(len(Vectors._fields), W),
        M=aligned_zeros(W, W),
        gram=aligned_zeros(rows if params.lazy else scratch_rows(rows), W),
        maps=empty_maps(n_features, n_in, n_out, params.out_shape, period(n_out, n_features)),
        diagnostics=no_diagnostics(),
    )
    state.small[0, m] = 1.0
    return state


def state_floats(params: Any, d: int) -> int:
    """The size of a state in 8-byte numbers."""
    W, (n_in, n_out) = len(params.shape), map_size(params)
    rows = n_in - 1
    small = (len(Vectors._fields) + W + (rows if params.lazy else scratch_rows(rows))) * W
    of_features = d * W + d * (not params.lazy) + d * (params.diagonal > 0)
    maps = maps_floats(d, n_in, n_out, len(params.out_shape), period(n_out, d))
    return small + of_features + maps


def period(n_out: int, d: int) -> int:
    """After how many shrinks all columns are brought up to date: that costs O(m³) a shrink, as the
    shrink itself does, and maps take no more memory than the table, or one block's.
    """
    return min(BLOCK * math.ceil(d / (BLOCK * n_out)), MOST_SHRINKS)


@jit
def of_eigenvalue(params: Any, eigenvalue: float, alpha: float) -> float:
    """f: 1/(λ + α), or with a root (λ + α)^(−½) and 1/(√λ + δ); 0 where that is 1/0."""
    value = eigenvalue + alpha
    value = (math.sqrt(value) if params.root else value) + params.delta
    return 1.0 / value if value > 0.0 else 0.0


@jit
def write_rest(params: Any, s: Any, raw: int, scale: float) -> None:
    """What of x lies outside Q, as it is in `rest`: times `scale` the raw row at this place of the
    columns, times `of_rest` added to w̄.
    """
    for at in range(s.maps.n_used[()]):
        j = s.maps.used[at]
        s.table[j, params.sketch_size] += s.of_rest[()] * s.rest[j]
        if scale > 0.0:
            s.table[j, raw] = scale * s.rest[j]
