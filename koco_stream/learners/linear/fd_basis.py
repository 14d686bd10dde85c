"""Q = MR of frequent_directions.py: its small vectors, what a row adds, and what a shrink takes."""

import math
from typing import Any, NamedTuple

import numpy as np

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.eigenvalues import symmetric_eigen
from koco_stream.numerics.instructions.feature_rows import combine, times
from koco_stream.numerics.lazy_maps import refresh_used
from koco_stream.numerics.rank_one import add_outer_product
from koco_stream.types import Array

NOTHING = 1e-14  # an eigenvalue below this share of the largest is rounding


class Vectors(NamedTuple):
    """β; the eigenvalues λ, decreasing, or with `lazy` the squares of S's rows. Scratch: a row's
    R̄x; z = Qx; what is added to the features' rows; numbers for each row of Q; sums.
    """

    beta: Array
    values: Array
    line: Array
    z: Array
    change: Array
    each: Array
    sums: Array


@inlined
def map_size(params: Any) -> tuple[int, int]:
    """The inputs of a shrink's map, the columns of R̄, and its outputs."""
    return params.sketch_size + params.buffer + 1, params.sketch_size + 1


@inlined
def rows_of(s: Any) -> int:
    """The rows of R."""
    return int(s.kept[()] + s.filled[()])


@jit
def refined(params: Any, s: Any, v: Any, idx: Array, x: Array) -> float:
    """rest ← x − QᵀQx, twice, as Gram and Schmidt have it; returns its square norm. What the second
    time finds along Q is added to z.
    """
    last, n2 = len(params.shape) - 1, 0.0
    refresh_used(s.maps, s.table, params.out_shape)
    for at in range(s.maps.n_used[()]):
        s.rest[s.maps.used[at]] = 0.0
    for i in range(idx.size):
        s.rest[idx[i]] = np.float64(x[i])
    subtract_from_rest(params, s, v.z, v.sums)
    for k in range(len(params.shape)):
        v.sums[k] = 0.0
    for at in range(s.maps.n_used[()]):
        j = s.maps.used[at]
        for k in range(last):
            v.sums[k] += s.rest[j] * s.table[j, k]
    times(s.M, v.sums, v.each, params.shape)
    for k in range(len(params.shape)):
        v.z[k] += v.each[k]
    subtract_from_rest(params, s, v.each, v.sums)
    for at in range(s.maps.n_used[()]):
        n2 += s.rest[s.maps.used[at]] ** 2
    for i in range(idx.size):
        if s.table[idx[i], last] == 0.0:  # of no column that was used
            n2 += s.rest[idx[i]] ** 2
    return n2


@jit
def subtract_from_rest(params: Any, s: Any, z: Array, sums: Array) -> None:
    """rest ← rest − Qᵀz."""
    combine(s.M, rows_of(s), z, sums, params.shape)
    for at in range(s.maps.n_used[()]):
        j = s.maps.used[at]
        for k in range(len(params.shape) - 1):
            s.rest[j] -= s.table[j, k] * sums[k]


@inlined
def add_weights(params: Any, s: Any, v: Any) -> None:
    """w ← w + Qᵀv for v = `each`: β ← β + Mᵀv."""
    combine(s.M, rows_of(s), v.each, v.sums, params.shape)
    for k in range(len(params.shape)):
        v.beta[k] += v.sums[k]


@jit
def add_row(params: Any, s: Any, v: Any, c: float, residual: float, n2: float) -> None:
    """SᵀS ← SᵀS + ĝĝᵀ for ĝ = cx and the row's z, which becomes that of the new Q. Leaves in
    `change` the multiple of x that the raw rows get; none if the new one is to be `rest`.
    """
    n, raw = rows_of(s), int(params.sketch_size + 1 + s.filled[()])
    scale = c if params.lazy else 1.0 / math.sqrt(residual)
    over = 1.0 / math.sqrt(s.alpha[()] + c * c * residual) if params.lazy else 1.0
    s.gradients[()] += 1
    if params.lazy or residual > 0.0:
        combine(s.M, n, v.z, v.sums, params.shape)
        for k in range(len(params.shape)):
            s.M[n, k] = 0.0 if s.exact[()] else -over * scale * v.sums[k]
        s.M[n, raw], v.z[n], v.values[n] = over, over * scale * residual, 0.0
        v.change[raw] = 0.0 if s.exact[()] else scale
        s.filled[()] += 1
        n += 1
    if params.lazy:
        v.line[raw], v.values[n - 1] = c * n2, c * c * n2
        for k in range(raw):
            s.gram[raw - 1, k] = c * v.line[k if k < params.sketch_size else k + 1]
        return
    for i in range(n):
        v.z[i] *= c
    add_outer_product(v.values, v.z, s.M, n, s.gram)
    for i in range(n):
        v.z[i] /= c


@jit
def decompose(params: Any, s: Any, v: Any) -> None:
    """The eigenvalues of SSᵀ, the first m rows of Q, and z = Qx."""
    m, rows, G = params.sketch_size, params.sketch_size + params.buffer, s.gram
    for i in range(rows):
        for k in range(i):
            G[i, k] = G[i, k] if i >= m else 0.0  # kept rows are orthogonal
            G[k, i] = G[i, k]
        if i < m:
            G[i, i] = v.values[i] if i < s.kept[()] else 0.0
    symmetric_eigen(G, rows, v.values, v.each, v.sums)
    for i in range(rows):
        v.values[i] = 0.0 if v.values[i] <= NOTHING * v.values[0] else v.values[i]
    for i in range(m):
        scale = 1.0 / math.sqrt(v.values[i]) if v.values[i] != 0.0 else 0.0
        for k in range(m):
            s.M[i, k] = scale * G[i, k]
        s.M[i, m] = 0.0
        for k in range(m, rows):
            s.M[i, k + 1] = scale * G[i, k]
    s.kept[()], s.filled[()] = m, 0
    times(s.M, v.line, v.z, params.shape)


@jit
def shrunk(params: Any, s: Any, v: Any) -> tuple[float, int]:
    """What a shrink takes from the eigenvalues, ρ = λ_{m+1}, of which α gets a share, and how many
    it keeps.
    """
    if params.lazy:
        decompose(params, s, v)
    rho, kept = v.values[params.sketch_size], 0
    while kept < params.sketch_size and not v.values[kept] - rho <= NOTHING * v.values[0]:
        kept += 1
    s.alpha[()] += params.growth * rho
    return rho, kept


@jit
def shrink(params: Any, s: Any, v: Any, rho: float, kept: int) -> None:
    """Algorithm 2, lines 2 and 3: λ ← λ − ρ, and the map of this epoch, which its end applies."""
    m, W, width = params.sketch_size, len(params.shape), len(params.out_shape)
    for i in range(W):
        v.values[i] = v.values[i] - rho if i < kept else 0.0
        v.each[i] = math.sqrt(v.values[i])
    map_of_epoch = s.maps.maps[s.maps.epoch[()]]
    for k in range(map_of_epoch.shape[0]):
        for i in range(width):
            map_of_epoch[k, i] = v.each[i] * s.M[i, k]
        map_of_epoch[k, m] = v.beta[k]  # w̄ ← R̄ᵀβ
    for i in range(W):
        v.beta[i] = 1.0 if i == m else 0.0
        for k in range(W):
            s.M[i, k] = 0.0
    for i in range(kept):
        s.M[i, i] = 1.0 / math.sqrt(v.values[i] + (s.alpha[()] if params.lazy else 0.0))
    s.kept[()], s.filled[()], s.gradients[()] = kept, 0, 0
    s.diagnostics.shrinks[()] += 1
