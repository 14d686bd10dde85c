"""Eigenvalues and eigenvectors of a small symmetric matrix, in a fixed order of operations."""

import math
from typing import Any

from koco_stream.numerics.compiler import inlined, jit
from koco_stream.numerics.instructions.feature_rows import add_outer, combine, rotate, row_at
from koco_stream.numerics.instructions.point_panels import panel_dot
from koco_stream.types import Array

EPSILON = 2.220446049250313e-16
SWEEPS = 60
NOTHING = 1e-140  # beside a matrix of norm 1; squares of smaller numbers lose their digits
LARGEST_POWER = 1000  # so that its reciprocal is a number, too


@jit
def unit_scale(largest: float) -> float:
    """The power of two that scales numbers up to `largest` to at most 1, without rounding."""
    power = -math.frexp(largest)[1] if math.isfinite(largest) else 0
    return math.ldexp(1.0, min(max(power, -LARGEST_POWER), LARGEST_POWER))


@jit
def symmetric_eigen(
    a: Array, shape: Any, n: int, matrix: int, vectors: int, values: int, scratch: int
) -> None:
    """Compute eigenvalues, to a[values:], and eigenvectors, as lines at a[vectors:], unsorted.

    Householder's tridiagonal form and implicit QL steps (Golub and Van Loan, 8.3) overwrite the
    matrix. Without convergence some eigenvalue is NaN.
    """
    W = len(shape)
    largest = 0.0
    for i in range(n):
        for k in range(n):
            largest += abs(a[matrix + i * W + k])
    scale = unit_scale(largest)
    for i in range(n * W):
        a[matrix + i] *= scale
    e, v, w, r = scratch, scratch + W, scratch + 2 * W, scratch + 3 * W
    for i in range(n):
        for k in range(W):
            a[vectors + i * W + k] = 1.0 if i == k else 0.0
    for k in range(n - 2):
        _reflect(a, shape, n, matrix, vectors, k, v, w, r)
    for i in range(n):
        a[values + i] = a[matrix + i * W + i]
        a[e + i] = a[matrix + i * W + i + 1] if i < n - 1 else 0.0
    for first in range(n):
        _diagonalise(a, shape, n, vectors, values, e, first)
    for i in range(n):
        a[values + i] /= scale


@jit
def _reflect(
    a: Array, shape: Any, n: int, matrix: int, vectors: int, k: int, v: int, w: int, r: int
) -> None:
    W = len(shape)
    size = 0.0
    for i in range(W):
        a[v + i] = 0.0
    for i in range(k + 1, n):
        a[v + i] = a[matrix + i * W + k]
        size += abs(a[v + i])
    if size == 0.0:
        return
    below = 0.0  # the square of what is to become zero, of v scaled: no square under- or overflows
    for i in range(k + 1, n):
        a[v + i] /= size
        below += a[v + i] * a[v + i] if i > k + 1 else 0.0
    if below == 0.0:
        return
    first = a[v + k + 1]
    a[v + k + 1] += math.copysign(math.sqrt(first * first + below), first)
    beta = 2.0 / (below + a[v + k + 1] * a[v + k + 1])
    start = k + 1  # v is zero before this position
    _combine(a, shape, n - start, matrix + start * W, v + start, w)  # Av
    half = 0.0
    for i in range(n):
        half += a[v + i] * a[w + i]
    half *= 0.5 * beta * beta
    for i in range(W):
        a[w + i] = half * a[v + i] - beta * a[w + i]
    _add_outer(a, shape, n - start, matrix + start * W, v + start, w)
    _add_outer(a, shape, n, matrix, w, v)
    _combine(a, shape, n - start, vectors + start * W, v + start, r)
    for i in range(W):
        a[w + i] = -beta * a[v + i]
    _add_outer(a, shape, n - start, vectors + start * W, w + start, r)


@inlined
def _combine(a: Array, shape: Any, n: int, matrix: int, factors: int, out: int) -> None:
    combine(row_at(a, matrix, shape), n, row_at(a, factors, shape), row_at(a, out, shape), shape)


@inlined
def _add_outer(a: Array, shape: Any, n: int, matrix: int, left: int, right: int) -> None:
    add_outer(row_at(a, matrix, shape), n, row_at(a, left, shape), row_at(a, right, shape), shape)


@jit
def _diagonalise(a: Array, shape: Any, n: int, vectors: int, d: int, e: int, first: int) -> None:
    W = len(shape)
    for _ in range(60):
        last = first
        while last < n - 1 and not (
            abs(a[e + last]) <= EPSILON * (abs(a[d + last]) + abs(a[d + last + 1])) + NOTHING
        ):
            last += 1
        if last == first:
            return
        ratio = (a[d + first + 1] - a[d + first]) / (2.0 * a[e + first])
        root = math.sqrt(ratio * ratio + 1.0)
        g = a[d + last] - a[d + first] + a[e + first] / (ratio + math.copysign(root, ratio))
        s = c = 1.0
        shift = 0.0
        i = last - 1
        while i >= first:
            f, b = s * a[e + i], c * a[e + i]
            root = math.sqrt(f * f + g * g)
            a[e + i + 1] = root
            if root < NOTHING:
                break
            inverse = 1.0 / root
            s, c = f * inverse, g * inverse
            g = a[d + i + 1] - shift
            root = (a[d + i] - g) * s + 2.0 * c * b
            shift = s * root
            a[d + i + 1] = g + shift
            g = c * root - b
            vector = row_at(a, vectors + i * W, shape)
            rotate(vector, row_at(a, vectors + (i + 1) * W, shape), c, s, shape)
            i -= 1
        if i >= first:
            a[d + i + 1] -= shift
            a[e + last] = 0.0
        else:
            a[d + first] -= shift
            a[e + first] = g
            a[e + last] = 0.0
    a[d + first] = math.nan


@jit
def eigen_rows(matrix: Array, n: int) -> None:
    """Replace line i of a positive semidefinite (n, n) matrix by λ_i v_iᵀ, unsorted.

    The method is one-sided Jacobi rotations (Golub and Van Loan, 8.6.3). `matrix` is (room, room),
    room a multiple of 16.
    """
    room, largest = matrix.shape[1], 0.0
    for i in range(n):
        for j in range(n):
            largest += abs(matrix[i, j])
    scale = unit_scale(largest)
    for i in range(n):
        for j in range(n):
            matrix[i, j] *= scale
    for _ in range(SWEEPS):
        turned = False
        for p in range(n - 1):
            for q in range(p + 1, n):
                pp = panel_dot(matrix, p * room, matrix, p * room, n)
                qq = panel_dot(matrix, q * room, matrix, q * room, n)
                pq = panel_dot(matrix, p * room, matrix, q * room, n)
                if abs(pq) <= n * EPSILON * math.sqrt(pp) * math.sqrt(qq):
                    continue
                turned = True
                zeta = (qq - pp) / (2.0 * pq)
                tangent = math.copysign(1.0, zeta) / (abs(zeta) + math.sqrt(1.0 + zeta * zeta))
                c = 1.0 / math.sqrt(1.0 + tangent * tangent)
                s = c * tangent
                for j in range(n):
                    x, y = matrix[p, j], matrix[q, j]
                    matrix[p, j] = c * x - s * y
                    matrix[q, j] = s * x + c * y
        if not turned:
            break
    for i in range(n):
        for j in range(n):
            matrix[i, j] /= scale
