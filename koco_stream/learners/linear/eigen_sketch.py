"""Frequent directions with a buffer, whose eigenvectors are known in every round.

SᵀS = Qᵀ diag(λ) Q, with orthonormal lines in Q. The table has, for each feature, its column of R:
m kept rows and up to b raw ones since the last shrink; Q = M R. A to-sketch vector ĝ = cx brings
one raw row, x divided by what of it lies outside Q, unless it lies in Q to rounding, and changes λ
and M as a rank-one change does (koco_stream.numerics.rank_one). So any function of SᵀS can be
applied to a vector in O(m²) numbers and the row's own features.

The b-th gradient since the last shrink shrinks the sketch: λ ← λ − λ_{m+1}, the first m lines of M
become the map of this epoch (koco_stream.numerics.lazy_maps), and M becomes I. The weights are
R̄ᵀβ, where R̄ has one row more than R, w̄, whose β is 1.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.lazy_maps import (
    Maps,
    current_epoch,
    empty_maps,
    is_current,
    map_at,
    maps_floats,
    refresh,
)
from koco_stream.numerics.llvm.feature_lines import (
    aligned_zeros,
    combine,
    gather,
    gather_current,
    line_dot,
    shape_for,
    times,
)
from koco_stream.numerics.llvm.secular import AT_ONCE
from koco_stream.numerics.rank_one import add_outer_product, rank_one_lines
from koco_stream.types import Array

PERIOD = 2048  # shrinks, after which all columns are brought up to date
LARGEST_BUFFER = 14  # of raw rows: each makes Q longer, and with it every rank-one change
FEW = 1024  # so many features at most: what is outside Q is computed feature by feature
# The share of ‖x‖² outside Q from which on x is a new direction: with few features, and with more,
# where ‖x‖² − ‖Qx‖² has to say what is outside.
NEW_AT, NEW_OF_MANY_AT = 1e-10, 1e-7
REFINE_AT = 1e-2  # below this share the digits of ‖x‖² − ‖Qx‖² are too few
NOTHING = 1e-14  # an eigenvalue below this share of the largest is rounding

# Lines in `a`. State: β; the eigenvalues λ, decreasing. Scratch: a row's gathered line, Rx; z = Qx;
# what is added to the features' lines; numbers for each line of Q; sums. Then M, and the scratch of
# rank-one changes.
BETA, LAMBDA, LINE, Z, COEF, EACH, SUM, FIRST_MATRIX = range(8)


class State(NamedTuple):
    """t: () rounds. kept, filled: () kept and raw rows of R. gradients: () since the last shrink.
    shrinks, folds: () how often. floor: () what is added to the eigenvalues or to their roots.
    rest, every: (d,), or (0,) of more than a few: a row's part outside Q, and all features. table:
    (d, W), line j = the kept rows' column j (m numbers), w̄_j, the raw rows' column j (b numbers);
    last the column's epoch. a: the small vectors and matrices. maps: the shrinks to be applied to
    columns.
    """

    t: Array
    kept: Array
    filled: Array
    gradients: Array
    shrinks: Array
    folds: Array
    floor: Array
    rest: Array
    every: Array
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
    """w = 0, S = 0. Nothing is drawn: `seed` is not used."""
    m, W = params.sketch_size, len(params.shape)
    a = aligned_zeros(small_lines(m + params.buffer, W), W)
    a[BETA, m] = 1.0
    n_in, n_out = map_size(params)
    few = n_features if n_features <= FEW else 0
    return State(
        t=np.zeros((), np.int64),
        kept=np.zeros((), np.int64),
        filled=np.zeros((), np.int64),
        gradients=np.zeros((), np.int64),
        shrinks=np.zeros((), np.int64),
        folds=np.zeros((), np.int64),
        floor=np.array(params.floor),
        rest=np.zeros(few),
        every=np.arange(few, dtype=np.int32),
        table=aligned_zeros(n_features, W),
        a=a.reshape(-1),
        maps=empty_maps(n_features, n_in, n_out, params.out_shape, PERIOD),
    )


def sketch_floats(m: int, d: int) -> int:
    """The size of a state in 8-byte numbers."""
    rows, sizes = m + buffer_for(m), shape_params(m)
    width, out = len(sizes["shape"]), len(sizes["out_shape"])
    maps = maps_floats(d, rows + 1, m + 1, out, PERIOD)
    return (d + small_lines(rows, width)) * width + 2 * FEW + maps


@jit
def inspect(params: Any, s: State, idx: Array, val: Array) -> tuple[float, float]:
    """uᵀx and ‖x‖² for the row (idx, val); leaves R̄x in the scratch, and brings the row's columns
    up to date.
    """
    a, W = s.a, len(params.shape)
    n_in, n_out = map_size(params)
    n2 = gather_current(s.table, params.shape, idx, val, a, LINE * W, current_epoch(s.maps))
    if n2 < 0.0:
        for i in range(idx.size):
            if not is_current(s.maps, s.table, idx[i]):
                refresh(s.maps, s.table, int(idx[i]), n_in, n_out, params.out_shape)
        n2 = gather(s.table, params.shape, idx, val, a, LINE * W)
        a[(LINE + 1) * W - 1] = 0.0
    return line_dot(a, params.shape, LINE * W, BETA * W), n2


@jit
def resolve(params: Any, s: State, idx: Array, val: Array, n2: float) -> float:
    """z = Qx of the row that was inspected last, in the scratch. Returns what of ‖x‖² lies outside
    Q, or 0 if that is rounding.
    """
    a, W, M = s.a, len(params.shape), FIRST_MATRIX * len(params.shape)
    times(a, params.shape, M, LINE * W, Z * W)
    outside = n2 - line_dot(a, params.shape, Z * W, Z * W)
    if s.every.size == 0:
        return outside if outside > NEW_OF_MANY_AT * n2 else 0.0
    if outside < REFINE_AT * n2:
        outside = refined(params, s, idx, val)
    return outside if outside > NEW_AT * n2 else 0.0


@jit
def refined(params: Any, s: State, idx: Array, val: Array) -> float:
    """What of ‖x‖² lies outside Q, from x − Qᵀz, whose part along Q is added to z: Gram and
    Schmidt, twice.
    """
    a, W, M = s.a, len(params.shape), FIRST_MATRIX * len(params.shape)
    n_in, n_out = map_size(params)
    combine(a, params.shape, s.kept[()] + s.filled[()], M, a, Z * W, a, SUM * W)
    for j in range(s.every.size):
        s.rest[j] = 0.0
        if s.table[j, W - 1] != 0.0:  # it was used
            refresh(s.maps, s.table, j, n_in, n_out, params.out_shape)
            for k in range(W - 1):
                s.rest[j] -= s.table[j, k] * a[SUM * W + k]
    for i in range(idx.size):
        s.rest[idx[i]] += np.float64(val[i])
    n2 = gather(s.table, params.shape, s.every, s.rest, a, SUM * W)
    times(a, params.shape, M, SUM * W, EACH * W)
    for k in range(W):
        a[Z * W + k] += a[EACH * W + k]
    return n2 - line_dot(a, params.shape, EACH * W, EACH * W)


@jit
def add_weights(params: Any, s: State) -> None:
    """w ← w + Qᵀv for the v in the scratch `EACH`: β ← β + Mᵀv."""
    a, W = s.a, len(params.shape)
    n = s.kept[()] + s.filled[()]
    combine(a, params.shape, n, FIRST_MATRIX * W, a, EACH * W, a, SUM * W)
    for k in range(W):
        a[BETA * W + k] += a[SUM * W + k]


@jit
def add_row(params: Any, s: State, c: float, outside: float) -> None:
    """SᵀS ← SᵀS + ĝĝᵀ for ĝ = cx and the row that was resolved last. Leaves Qĝ in the scratch `Z`,
    and in `COEF` the multiple of x that the raw rows get.
    """
    a, m, W = s.a, params.sketch_size, len(params.shape)
    M, n, raw = FIRST_MATRIX * W, int(s.kept[()] + s.filled[()]), int(m + 1 + s.filled[()])
    if outside > 0.0:
        scale = 1.0 / math.sqrt(outside)
        combine(a, params.shape, n, M, a, Z * W, a, SUM * W)
        for k in range(W):
            a[M + n * W + k] = -scale * a[SUM * W + k]
        a[M + n * W + raw] = 1.0
        a[COEF * W + raw] = scale
        a[LAMBDA * W + n] = 0.0
        a[Z * W + n] = outside * scale
        s.filled[()] += 1
        n += 1
    s.gradients[()] += 1
    for i in range(n):
        a[Z * W + i] *= c
    add_outer_product(a, W, n, LAMBDA * W, Z * W, M, (FIRST_MATRIX + W) * W)


@jit
def shrink(params: Any, s: State) -> float:
    """λ ← λ − ρ for the m largest eigenvalues, and the map of this epoch, which its end applies.
    Returns ρ, the next eigenvalue, or 0 if there is none.
    """
    a, m, W, width = s.a, params.sketch_size, len(params.shape), len(params.out_shape)
    n_in, n_out = map_size(params)
    M, own = FIRST_MATRIX * W, map_at(s.maps, n_in, n_out, width)
    rho, kept = a[LAMBDA * W + m], 0
    while kept < m and a[LAMBDA * W + kept] - rho > NOTHING * a[LAMBDA * W]:
        kept += 1
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
    return rho
