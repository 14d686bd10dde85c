"""Eigenvalues and eigenvectors of a small symmetric matrix, in a fixed order of operations.

The inner loops are over independent numbers and begin at 0: so the compiler vectorises them.
"""

import math

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.types import Array

EPSILON = 2.0**-52
MOST_STEPS = 60
NOTHING = 1e-140  # beside a matrix of trace 1; squares of smaller numbers lose their digits
LARGEST_POWER = 1000  # so that its reciprocal is a number, too


@jit
def unit_scale(largest: float) -> float:
    """The power of two that scales numbers up to `largest` to at most 1, without rounding."""
    power = -math.frexp(largest)[1] if math.isfinite(largest) else 0
    return math.ldexp(1.0, min(max(power, -LARGEST_POWER), LARGEST_POWER))


@jit
def symmetric_eigen(A: Array, n: int, d: Array, e: Array, q: Array) -> None:
    """Replace the first n rows of a positive semidefinite A (n, n) by its eigenvectors, and d by
    its eigenvalues: Householder's tridiagonal form and implicit QL steps (Golub and Van Loan, 8.3).

    e, q: (n,) scratch. Without convergence some eigenvalue is NaN.
    """
    trace, width = 0.0, min((n + 7) // 8 * 8, A.shape[1])  # whole registers
    for i in range(n):
        trace += A[i, i]
    unit = unit_scale(trace)
    for i in range(n):
        for j in range(n):
            A[i, j] *= unit
    for k in range(n):
        d[k] = A[k, k]
        e[k] = _reflect(A, k, n, width, A[k], q)
    for k in range(n):
        _accumulate(A, n - 1 - k, n, width, A[n - 1 - k], q)
    for i in range(n):
        for k in range(i):
            A[i, k], A[k, i] = A[k, i], A[i, k]
    for first in range(n):
        _diagonalise(A, n, d, e, first)
    for i in range(n):
        d[i] = d[i] / unit + 0.0 * trace  # NaN if a number is not finite
    sort_pairs(A, n, d, q)


@jit
def _reflect(A: Array, k: int, n: int, width: int, v: Array, q: Array) -> float:
    """A ← HAH, H = I − vvᵀ, so that row k is zero behind its (k+1)-th number, which is returned.

    v replaces that row, and zeros its column.
    """
    first, below, half = v[k + 1] if k + 1 < n else 0.0, 0.0, 0.0
    for i in range(k + 2, n):
        below += v[i] * v[i]
    found = below > NOTHING * NOTHING
    left = -math.copysign(math.sqrt(first * first + below), first) if found else first
    scale = 1.0 / math.sqrt(left * left - first * left) if found else 0.0
    for j in range(width):
        v[j] = scale * (v[j] if j > k + 1 else first - left if j == k + 1 else 0.0)
        q[j] = 0.0
    for i in range(k + 1, n):
        A[i, k] = 0.0
    if not found:
        return left
    for i in range(k + 1, n):
        for j in range(width):
            q[j] += v[i] * A[i, j]
    for i in range(k + 1, n):
        half += 0.5 * q[i] * v[i]
    for j in range(width):
        q[j] -= half * v[j]
    for i in range(k + 1, n):
        for j in range(width):
            A[i, j] -= v[i] * q[j] + q[i] * v[j]
    return left


@jit
def _accumulate(A: Array, k: int, n: int, width: int, v: Array, q: Array) -> None:
    """Q ← HQ, where Q is in the rows after v, row k, which becomes one of Q."""
    for j in range(width):
        q[j] = 0.0
    for i in range(k + 1, n):
        for j in range(width):
            q[j] += v[i] * A[i, j]
    for i in range(k + 1, n):
        for j in range(width):
            A[i, j] -= v[i] * q[j]
    for j in range(width):
        v[j] = 1.0 if j == k else 0.0


@jit
def _diagonalise(V: Array, n: int, d: Array, e: Array, first: int) -> None:
    for _ in range(MOST_STEPS):
        last = first
        while last < n - 1 and not (
            abs(e[last]) <= EPSILON * (abs(d[last]) + abs(d[last + 1])) + NOTHING
        ):
            last += 1
        if last == first:
            return
        ratio = (d[first + 1] - d[first]) / (2.0 * e[first])
        g = d[last] - d[first]
        g += e[first] / (ratio + math.copysign(math.sqrt(ratio * ratio + 1.0), ratio))
        c, s, shift, i = 1.0, 1.0, 0.0, last - 1
        while i >= first:
            f, b = s * e[i], c * e[i]
            e[i + 1] = math.sqrt(f * f + g * g)
            if e[i + 1] < NOTHING:
                break
            inverse = 1.0 / e[i + 1]
            c, s = g * inverse, f * inverse
            g = d[i + 1] - shift
            change = (d[i] - g) * s + 2.0 * c * b
            shift = s * change
            d[i + 1] = g + shift
            g = c * change - b
            rotate(V[i], V[i + 1], c, -s)
            i -= 1
        d[i + 1] -= shift
        if i < first:
            e[first] = g
        e[last] = 0.0
    d[first] = math.nan


@inlined
def rotate(one: Array, other: Array, c: float, s: float) -> None:
    """Two rows f and g become cf + sg and cg − sf."""
    for k in range(one.size):
        f, g = one[k], other[k]
        one[k] = c * f + s * g
        other[k] = c * g - s * f


@jit
def sort_pairs(Q: Array, n: int, d: Array, z: Array) -> None:
    """The rows of Q and the numbers of z in decreasing order of d."""
    for i in range(n):
        best = i
        for k in range(i + 1, n):
            best = k if d[k] > d[best] else best
        if best > i:
            exchange(Q, d, z, i, best)


@jit
def exchange(Q: Array, d: Array, z: Array, i: int, k: int) -> None:
    """Rows i and k of Q, and their numbers."""
    d[i], d[k] = d[k], d[i]
    z[i], z[k] = z[k], z[i]
    for j in range(Q.shape[1]):
        Q[i, j], Q[k, j] = Q[k, j], Q[i, j]
