"""Frequent directions with a buffer, as FD-SON keeps them: m kept rows, orthogonal, and up to m raw
rows since the last shrink.

What a shrink does to the columns is a linear map, applied when a column is next touched
(koco_stream.numerics.lazy_maps). Its small vectors and matrices lie in one flat array `a`;
`a[BETA * W + i]` is β_i, where W is the width of a row (see `feature_rows`).
"""

import math
from typing import Any

from koco_stream.numerics.compiler import jit
from koco_stream.numerics.eigenvalues import symmetric_eigen
from koco_stream.numerics.lazy_maps import Maps, map_at
from koco_stream.types import Array

NOTHING = 1e-14  # an eigenvalue below this share of the largest is rounding

# Vectors in `a`, each (W,). State: β; the kept rows' eigenvalues λ; 1/√(α + λ). Scratch: a row's
# gathered line; x̂ = Sx; L⁻¹x̂; Hx̂; what is added to the features' lines; eigenvalues; four more.
# Then, each (2m, W): G = SSᵀ (its lower rows, for the buffer), L, scratch for eigenvectors.
BETA, KEPT, ROOT, LINE, X_HAT, Y, HX, COEF, VALUES, MORE = range(10)
FIRST_MATRIX = MORE + 4


@jit
def solve_transposed(a: Array, W: int, m: int, rows: int) -> None:
    """a[HX:] ← L⁻ᵀ a[Y:], from the last row up; the kept rows' block of L is diagonal."""
    L = (FIRST_MATRIX + 2 * m) * W
    for i in range(rows):
        a[HX * W + i] = a[Y * W + i]
    for i in range(rows - 1, m - 1, -1):
        x = a[HX * W + i] / a[L + i * W + i]
        a[HX * W + i] = x
        for k in range(i):
            a[HX * W + k] -= a[L + i * W + k] * x
    for i in range(m):
        a[HX * W + i] *= a[ROOT * W + i]


@jit
def shrink(a: Array, maps: Maps, shape: Any, width: int, m: int, alpha: float) -> float:
    """Algorithm 2, lines 2 and 3, for the full buffer: the map of this epoch, whose lines have
    `width` numbers, new eigenvalues, β = 0. Returns the new trace of SSᵀ.

    Leaves Sx of the row that filled the buffer, with the new S, in the scratch `Y`.
    """
    W = len(shape)
    G, vectors = FIRST_MATRIX * W, (FIRST_MATRIX + 4 * m) * W
    n = 2 * m
    for i in range(n):
        for k in range(i):
            if i < m:
                a[G + i * W + k] = 0.0  # kept rows are orthogonal
            a[G + k * W + i] = a[G + i * W + k]
        if i < m:
            a[G + i * W + i] = a[KEPT * W + i]
    symmetric_eigen(a, shape, n, G, vectors, VALUES * W, MORE * W)

    own = map_at(maps, n + 1, m + 1, width)
    for k in range((n + 1) * width):
        maps.lines[own + k] = 0.0
    largest = unknown = 0.0  # `unknown` is NaN if an eigenvalue is: then all of them are
    for i in range(n):
        largest = max(largest, a[VALUES * W + i])
        unknown += 0.0 * a[VALUES * W + i]
    # The inputs of the map are a column's kept numbers, w̄ and buffer, in this order; row i of the
    # Gram matrix is input i, or i + 1.
    for rank in range(m + 1):
        best = 0
        for i in range(n):
            if a[VALUES * W + i] > a[VALUES * W + best]:
                best = i
        value = a[VALUES * W + best]
        a[VALUES * W + best] = -math.inf
        a[LINE * W + rank] = unknown + (value if value > NOTHING * largest else 0.0)
        a[Y * W + rank] = best
    rho = a[LINE * W + m]
    trace = 0.0
    for rank in range(m):
        value, best = a[LINE * W + rank], int(a[Y * W + rank])
        a[KEPT * W + rank] = max(value - rho, 0.0)
        a[ROOT * W + rank] = 1.0 / math.sqrt(alpha + a[KEPT * W + rank])
        trace += a[KEPT * W + rank]
        factor = math.sqrt(a[KEPT * W + rank] / value) if value > 0.0 else 0.0
        x_hat = 0.0
        for i in range(n):
            entry = i if i < m else i + 1
            maps.lines[own + entry * width + rank] = factor * a[vectors + best * W + i]
            x_hat += factor * a[vectors + best * W + i] * a[X_HAT * W + i]
        a[Y * W + rank] = x_hat
    for i in range(n):  # w̄ ← w̄ + Sᵀβ
        entry = i if i < m else i + 1
        maps.lines[own + entry * width + m] = a[BETA * W + i]
        a[BETA * W + i] = 0.0
    maps.lines[own + m * width + m] = 1.0
    return trace
