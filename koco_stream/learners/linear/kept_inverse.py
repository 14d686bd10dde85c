"""H = (αI + SSᵀ)⁻¹ as RP-SON keeps it: explicitly while that is exact enough, then by the Cholesky
factor of αI + SSᵀ.

Once SSᵀ is a thousand times α, each product with H is refined by a step on its residual. Once it is
a million times α, an explicit H has too few digits for x − SᵀHSx even so, and products solve with
the factor. All lies in one flat array `a`; `a[B * W + i]` is b_i, where W is the width of a line
(koco_stream.numerics.instructions.feature_rows).
"""

from typing import Any

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import add_outer, row_at, times
from koco_stream.numerics.linear_algebra import solve_factored
from koco_stream.types import Array

# Vectors in `a`, each (W,). State: b. Scratch: x̂ = Sx, r, Hx̂, Hr, what is added to the features'
# lines, the factors of the outer products. Then H, SSᵀ and the Cholesky factor of αI + SSᵀ, each
# (W, W).
B, X_HAT, R, HX, HR, COEF, ON_R, ON_S, BOTH, FIRST_MATRIX = range(10)

# From trace(SSᵀ) = this many times α on H is not kept: its rounding, 1e-16/α, times λ has to stay
# below α/λ.
SOLVE_AT = 1e6
REFINE_AT = 1e3  # from here on Hv is refined by a step on what v − (αI + SSᵀ)Hv leaves
SPOILT_AT = 1e-9  # H is made anew if that step is larger than this share of Hv


@inlined
def matrices(W: int) -> tuple[int, int, int]:
    """The offsets in `a` of H, of SSᵀ and of the Cholesky factor of αI + SSᵀ."""
    return FIRST_MATRIX * W, (FIRST_MATRIX + W) * W, (FIRST_MATRIX + 2 * W) * W


@inlined
def trace_of(a: Array, m: int, W: int) -> float:
    """The trace of SSᵀ."""
    K, trace = matrices(W)[1], 0.0
    for i in range(m):
        trace += a[K + i * (W + 1)]
    return trace


@inlined
def times_at(a: Array, shape: Any, matrix: int, v: int, out: int) -> None:
    """out ← Mv for offsets of `a`."""
    times(row_at(a, matrix, shape), row_at(a, v, shape), row_at(a, out, shape), shape)


@inlined
def add_outer_at(a: Array, shape: Any, m: int, matrix: int, left: int, right: int) -> None:
    """M_i += left_i·right for the first m rows, for offsets of `a`."""
    add_outer(row_at(a, matrix, shape), m, row_at(a, left, shape), row_at(a, right, shape), shape)


@jit
def times_H(
    a: Array, shape: Any, m: int, alpha: float, trace: float, solving: bool, v: int, out: int
) -> bool:
    """out ← Hv, the vectors at these offsets of `a`, by the factor if `solving`.

    `trace` is that of SSᵀ. Returns whether the product's rounding is small enough.
    """
    W = len(shape)
    H, K, L = matrices(W)
    if solving:
        solve_factored(a, W, m, L, 0, v, out)
        return True
    times_at(a, shape, H, v, out)
    if trace <= REFINE_AT * alpha:
        return True
    times_at(a, shape, K, out, ON_R * W)
    for i in range(m):
        a[ON_R * W + i] = a[v + i] - alpha * a[out + i] - a[ON_R * W + i]
    times_at(a, shape, H, ON_R * W, ON_S * W)
    size, change = 0.0, 0.0
    for i in range(m):
        size += abs(a[out + i])
        change += abs(a[ON_S * W + i])
        a[out + i] += a[ON_S * W + i]
    return change <= SPOILT_AT * size


@jit
def dot(a: Array, n: int, left: int, right: int) -> float:
    """The dot product Σ_i a[left + i]·a[right + i] over i < n, summed in order."""
    total = 0.0
    for i in range(n):
        total += a[left + i] * a[right + i]
    return total
