"""Frequent directions with a buffer, whose eigenvectors are known in every round.

SᵀS = Qᵀ diag(λ) Q, with orthonormal lines in Q. The table has, for each feature, its column of R:
m kept rows and up to b raw ones since the last shrink; Q = M R. A to-sketch vector ĝ = cx brings
one raw row, unless it lies in Q to rounding, and changes λ and M as a rank-one change does
(koco_stream.numerics.rank_one). So any function of SᵀS can be applied to a vector in O(m²) numbers
and the row's own features. The raw row is x over the length of what of it lies outside Q, or, where
that is so little that x hides it, what lies outside Q itself, feature by feature.

The b-th gradient since the last shrink shrinks the sketch: λ ← λ − λ_{m+1}, the first m lines of M
become the map of this epoch (koco_stream.numerics.lazy_maps), and M becomes I. The weights are
R̄ᵀβ, where R̄ has one row more than R, w̄, whose β is 1.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import (
    aligned_zeros,
    combine,
    gather,
    gather_current,
    line_dot,
    row_at,
    shape_for,
    times,
)
from koco_stream.numerics.instructions.secular import AT_ONCE
from koco_stream.numerics.lazy_maps import (
    USED,
    Maps,
    current_epoch,
    empty_maps,
    is_current,
    map_at,
    maps_floats,
    refresh,
    refresh_used,
)
from koco_stream.numerics.rank_one import add_outer_product, rank_one_lines
from koco_stream.types import Array

PERIOD = 2048  # shrinks, after which all columns are brought up to date
LARGEST_BUFFER = 14  # of raw rows: each makes Q longer, and with it every rank-one change
# Below this share of ‖x‖², what is outside Q is computed feature by feature, since the digits of
# ‖x‖² − ‖Qx‖² are too few: with at most so many features; and with more, of which all used ones
# would be passed over, unless the difference itself is no more than rounding.
FEW, REFINE_AT, REFINE_OF_MANY_AT, ROUNDING_OF_MANY = 1024, 1e-2, 1e-6, 1e-14
NEW_AT = 1e-24  # the share from which on x is a new direction: (10⁻¹²)², some thousand roundings
NOTHING = 1e-14  # an eigenvalue below this share of the largest is rounding

# Lines in `a`. State: β; the eigenvalues λ, decreasing. Scratch: a row's gathered line, Rx; z = Qx;
# what is added to the features' lines; numbers for each line of Q; sums. Then M, and the scratch of
# rank-one changes.
BETA, LAMBDA, LINE, Z, COEF, EACH, SUM, FIRST_MATRIX = range(8)


class State(NamedTuple):
    """t: () rounds. kept, filled: () kept and raw rows of R. gradients: () since the last shrink.
    shrinks, folds, doubtful_rounds: () how often. longest_step: () so far. floor: () what is added
    to the eigenvalues or to their roots. rest: (d,) scratch, a row's part outside Q. table: (d, W),
    line j = the kept rows' column j (m numbers), w̄_j, the raw rows' column j (b numbers); last the
    column's epoch. a: the small vectors and matrices. maps: the shrinks to be applied to columns.
    """

    t: Array
    kept: Array
    filled: Array
    gradients: Array
    shrinks: Array
    folds: Array
    doubtful_rounds: Array
    longest_step: Array
    floor: Array
    rest: Array
    table: Array
    a: Array
    maps: Maps


def shape_params(m: int) -> dict[str, Any]:
    """The entries of `Params` that follow from the sketch's size m."""
    rows = m + buffer_for(m)
    line = (0,) * (AT_ONCE * math.ceil((rows + 2) / AT_ONCE))  # rank-one changes take whole ones
    return {"sketch_size": m, "buffer": buffer_for(m), "shape": line, "out_shape": shape_for(m + 1)}


def buffer_for(m: int) -> int:
    """b, the number of raw rows that are kept between shrinks."""
    return min(math.ceil(2 * m / 3), LARGEST_BUFFER)


def small_lines(rows: int, width: int) -> int:
    """The lines of `a` for so many rows of R and lines of this width."""
    return FIRST_MATRIX + width + rank_one_lines(rows)


@inlined
def map_size(params: Any) -> tuple[int, int]:
    """The inputs of a shrink's map, the columns of R̄, and its outputs."""
    return params.sketch_size + params.buffer + 1, params.sketch_size + 1


def init(params: Any, n_features: int, seed: int) -> State:
    m, W = params.sketch_size, len(params.shape)
    a = aligned_zeros(small_lines(m + params.buffer, W), W)
    a[BETA, m] = 1.0
    n_in, n_out = map_size(params)
    counts = ("t", "kept", "filled", "gradients", "shrinks", "folds", "doubtful_rounds")
    return State(
        **{name: np.zeros((), np.int64) for name in counts},
        longest_step=np.zeros(()),
        floor=np.array(params.floor),
        rest=np.zeros(n_features),
        table=aligned_zeros(n_features, W),
        a=a.reshape(-1),
        maps=empty_maps(n_features, n_in, n_out, params.out_shape, PERIOD),
    )


def sketch_floats(m: int, d: int) -> int:
    """The size of a state in 8-byte numbers."""
    rows, sizes = m + buffer_for(m), shape_params(m)
    width, out = len(sizes["shape"]), len(sizes["out_shape"])
    maps = maps_floats(d, rows + 1, m + 1, out, PERIOD)
    return (d + small_lines(rows, width)) * width + d + maps


@jit
def inspect(params: Any, s: State, idx: Array, val: Array) -> tuple[float, float]:
    """uᵀx and ‖x‖² for the row (idx, val); leaves R̄x in the scratch, and brings the row's columns
    up to date.
    """
    a, W = s.a, len(params.shape)
    n_in, n_out = map_size(params)
    n2 = gather_current(
        s.table, params.shape, idx, val, row_at(a, LINE * W, params.shape), current_epoch(s.maps)
    )
    if n2 < 0.0:
        for i in range(idx.size):
            if not is_current(s.maps, s.table, idx[i]):
                refresh(s.maps, s.table, np.int64(idx[i]), n_in, n_out, params.out_shape)
        n2 = gather(s.table, params.shape, idx, val, row_at(a, LINE * W, params.shape))
        a[(LINE + 1) * W - 1] = 0.0
    line, beta = row_at(a, LINE * W, params.shape), row_at(a, BETA * W, params.shape)
    return line_dot(line, beta, params.shape), n2


@jit
def resolve(params: Any, s: State, idx: Array, val: Array, n2: float) -> tuple[float, bool]:
    """z = Qx of the row that was inspected last, in the scratch. Returns what of ‖x‖² lies outside
    Q, 0 if that is rounding, and whether it was computed feature by feature and is in `rest`.
    """
    a, W, M = s.a, len(params.shape), FIRST_MATRIX * len(params.shape)
    z = row_at(a, Z * W, params.shape)
    times(row_at(a, M, params.shape), row_at(a, LINE * W, params.shape), z, params.shape)
    outside = n2 - line_dot(z, z, params.shape)
    if s.rest.size > FEW:
        if outside <= ROUNDING_OF_MANY * n2:
            return 0.0, False
        if outside > REFINE_OF_MANY_AT * n2:
            return outside, False
    elif outside > REFINE_AT * n2:
        return outside, False
    outside = refined(params, s, idx, val)
    return (outside if not outside <= NEW_AT * n2 else 0.0), True


@jit
def refined(params: Any, s: State, idx: Array, val: Array) -> float:
    """rest ← x − QᵀQx, twice, as Gram and Schmidt have it; returns its square norm. What the second
    time finds along Q is added to z.
    """
    a, W, M = s.a, len(params.shape), FIRST_MATRIX * len(params.shape)
    n_in, n_out = map_size(params)
    refresh_used(s.maps, s.table, n_in, n_out, params.out_shape)
    for at in range(s.maps.counts[USED]):
        s.rest[s.maps.used[at]] = 0.0
    for i in range(idx.size):
        s.rest[idx[i]] = np.float64(val[i])
    subtract_from_rest(params, s, Z * W)
    for k in range(W):
        a[SUM * W + k] = 0.0
    for at in range(s.maps.counts[USED]):
        j = s.maps.used[at]
        for k in range(W - 1):
            a[SUM * W + k] += s.rest[j] * s.table[j, k]
    times(
        row_at(a, M, params.shape),
        row_at(a, SUM * W, params.shape),
        row_at(a, EACH * W, params.shape),
        params.shape,
    )
    for k in range(W):
        a[Z * W + k] += a[EACH * W + k]
    subtract_from_rest(params, s, EACH * W)
    n2 = 0.0
    for at in range(s.maps.counts[USED]):
        n2 += s.rest[s.maps.used[at]] ** 2
    for i in range(idx.size):
        if s.table[idx[i], W - 1] == 0.0:  # of no column that was used
            n2 += s.rest[idx[i]] ** 2
    return n2


@inlined
def combine_rows(params: Any, a: Array, n: int, v: int) -> None:
    """SUM ← Mᵀv for the v at this offset of the scratch and the first n lines of M."""
    W = len(params.shape)
    M, sums = row_at(a, FIRST_MATRIX * W, params.shape), row_at(a, SUM * W, params.shape)
    combine(M, n, row_at(a, v, params.shape), sums, params.shape)


@jit
def subtract_from_rest(params: Any, s: State, v: int) -> None:
    """rest ← rest − Qᵀv for the v at this offset of the scratch."""
    a, W = s.a, len(params.shape)
    n = s.kept[()] + s.filled[()]
    combine_rows(params, a, n, v)
    for at in range(s.maps.counts[USED]):
        j = s.maps.used[at]
        for k in range(W - 1):
            s.rest[j] -= s.table[j, k] * a[SUM * W + k]


@jit
def add_weights(params: Any, s: State) -> None:
    """w ← w + Qᵀv for the v in the scratch `EACH`: β ← β + Mᵀv."""
    a, W = s.a, len(params.shape)
    n = s.kept[()] + s.filled[()]
    combine_rows(params, a, n, EACH * W)
    for k in range(W):
        a[BETA * W + k] += a[SUM * W + k]


@jit
def add_row(params: Any, s: State, c: float, outside: float, exact: bool) -> None:
    """SᵀS ← SᵀS + ĝĝᵀ for ĝ = cx and the row that was resolved last. Leaves Qĝ in the scratch `Z`,
    and in `COEF` the multiple of x that the raw rows get; none if the new one is to be `rest`.
    """
    a, m, W = s.a, params.sketch_size, len(params.shape)
    M, n, raw = FIRST_MATRIX * W, int(s.kept[()] + s.filled[()]), int(m + 1 + s.filled[()])
    if outside > 0.0:
        scale = 1.0 / math.sqrt(outside)
        if exact:
            for k in range(W):
                a[M + n * W + k] = 0.0
        else:
            combine_rows(params, a, n, Z * W)
            for k in range(W):
                a[M + n * W + k] = -scale * a[SUM * W + k]
            a[COEF * W + raw] = scale
        a[M + n * W + raw] = 1.0
        a[LAMBDA * W + n] = 0.0
        a[Z * W + n] = outside * scale
        s.filled[()] += 1
        n += 1
    s.gradients[()] += 1
    for i in range(n):
        a[Z * W + i] *= c
    add_outer_product(a, W, n, LAMBDA * W, Z * W, M, (FIRST_MATRIX + W) * W)


@jit
def write_rest(params: Any, s: State, raw: int, scale: float, w_coef: float) -> None:
    """What of x lies outside Q, as it is in `rest`: times `scale` the raw row at this place of the
    columns, times `w_coef` added to w̄.
    """
    for at in range(s.maps.counts[USED]):
        j = s.maps.used[at]
        s.table[j, params.sketch_size] += w_coef * s.rest[j]
        if scale > 0.0:
            s.table[j, raw] = scale * s.rest[j]


@jit
def shrunk(params: Any, s: State) -> tuple[float, int]:
    """What a shrink takes from the eigenvalues, ρ = λ_{m+1}, and how many it keeps."""
    a, m, W = s.a, params.sketch_size, len(params.shape)
    rho, kept = a[LAMBDA * W + m], 0
    while kept < m and not (a[LAMBDA * W + kept] - rho <= NOTHING * a[LAMBDA * W]):  # NaN is kept
        kept += 1
    return rho, kept


@jit
def shrink(params: Any, s: State, rho: float, kept: int) -> None:
    """λ ← λ − ρ for the largest eigenvalues, and the map of this epoch, which its end applies."""
    a, m, W, width = s.a, params.sketch_size, len(params.shape), len(params.out_shape)
    n_in, n_out = map_size(params)
    M, own = FIRST_MATRIX * W, map_at(s.maps, n_in, n_out, width)
    for k in range(n_in):
        for i in range(width):
            inside = i < kept
            s.maps.lines[own + k * width + i] = a[M + i * W + k] if inside else 0.0
        s.maps.lines[own + k * width + m] = a[BETA * W + k]  # w̄ ← R̄ᵀβ
    for i in range(W):
        a[LAMBDA * W + i] = a[LAMBDA * W + i] - rho if i < kept else 0.0
        a[BETA * W + i] = 1.0 if i == m else 0.0
        for k in range(W):
            a[M + i * W + k] = 1.0 if i == k and i < kept else 0.0
    s.kept[()], s.filled[()], s.gradients[()] = kept, 0, 0
    s.shrinks[()] += 1
