"""Small linear algebra in a fixed order of operations, for the compiled learners.

A sparse row is `idx` (s,) int32, increasing feature numbers, and `val` (s,), their values. A
`table` (d, width) has a line for each feature.
"""

import math

import numpy as np

from koco_stream.numerics.compiler import jit
from koco_stream.types import Array


@jit
def square_norm(val: Array) -> float:
    """‖x‖² of a row's values."""
    n2 = 0.0
    for i in range(val.size):
        n2 += np.float64(val[i]) * np.float64(val[i])
    return n2


@jit
def row_dot(w: Array, idx: Array, val: Array) -> float:
    """wᵀx of w (d,) and the row x = (idx, val)."""
    total = 0.0
    for i in range(idx.size):
        total += w[idx[i]] * np.float64(val[i])
    return total


@jit
def dot_and_norm(w: Array, idx: Array, val: Array) -> tuple[float, float]:
    """`row_dot` and `square_norm` in one loop."""
    total = n2 = 0.0
    for i in range(idx.size):
        v = np.float64(val[i])
        total += w[idx[i]] * v
        n2 += v * v
    return total, n2


@jit
def gram_schmidt(table: Array, m: int, dots: Array) -> None:
    """Orthonormalise the first m columns of `table` in place; one that vanishes becomes zero."""
    d = table.shape[0]
    for i in range(m):
        for k in range(i + 1):
            dots[k] = 0.0
        for j in range(d):
            v = table[j, i]
            for k in range(i + 1):
                dots[k] += table[j, k] * v
        original = dots[i]
        n2 = 0.0
        for j in range(d):
            v = table[j, i]
            for k in range(i):
                v -= dots[k] * table[j, k]
            table[j, i] = v
            n2 += v * v
        scale = 1.0 / math.sqrt(n2) if n2 > 1e-24 * original else 0.0
        for j in range(d):
            table[j, i] *= scale


@jit
def product(left: Array, right: Array, out: Array) -> None:
    """out ← left·right, (n, k) times (k, m)."""
    for i in range(left.shape[0]):
        out[i, :] = 0.0
        for k in range(left.shape[1]):
            for j in range(right.shape[1]):
                out[i, j] += left[i, k] * right[k, j]


@jit
def factor_shifted(M: Array, m: int, shift: float, L: Array) -> None:
    """Cholesky factor L with LLᵀ = shift·I + M of the first m rows of a positive semidefinite M.

    Pivots are at least `shift`.
    """
    for i in range(m):
        for j in range(i + 1):
            total = M[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                L[i, i] = math.sqrt(max(total + shift, shift))
            else:
                L[i, j] = total / L[j, j]


@jit
def solve_factored(L: Array, m: int, first: int, right: Array, out: Array) -> None:
    """out ← (LLᵀ)⁻¹·right; `right` is zero before `first`."""
    for i in range(first, m):
        total = right[i]
        for k in range(first, i):
            total -= L[i, k] * out[k]
        out[i] = total / L[i, i]
    for i in range(m - 1, first - 1, -1):
        total = out[i]
        for k in range(i + 1, m):
            total -= L[k, i] * out[k]
        out[i] = total / L[i, i]


@jit
def inverse_of_shifted(M: Array, m: int, shift: float, inverse: Array, L: Array) -> None:
    """The inverse of shift·I + M; L as for `factor_shifted`."""
    factor_shifted(M, m, shift, L)
    for column in range(m):
        for i in range(column, m):
            inverse[column, i] = 1.0 if i == column else 0.0
        solve_factored(L, m, column, inverse[column], inverse[column])
        for i in range(column, m):
            inverse[i, column] = inverse[column, i]
