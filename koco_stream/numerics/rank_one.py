"""The eigenpairs of a symmetric matrix after a rank-one change, from those before.

With z = Qg, Qᵀ diag(d) Q + ggᵀ has the eigenvalues of diag(d) + zzᵀ, whose eigenvectors turn the
lines of Q. They come in O(n²) from Golub's secular equation, each correct relative to itself, and
Gu and Eisenstat's formula. Deflation leaves out what z barely touches, and one of two equal
eigenvalues. Arguments are offsets, above 0, in a flat array `a`, in lines of W numbers.
"""

import math

from koco_stream.numerics.compiler import jit
from koco_stream.numerics.instructions.secular import (
    AT_ONCE,
    EPSILON,
    LINES_AT_ONCE,
    ROOT_LINES,
    TAU,
    secular_columns,
    secular_start,
    secular_step,
    secular_values,
    squared,
    turned,
)
from koco_stream.types import Array

SAME = 8.0 * EPSILON  # eigenvalues that differ by this share of them are one
LARGEST = 100  # so that eigenvalues of a ratio of 10¹²⁰ have their digits
MOST_STEPS = 100  # of which halving the bounds alone needs 60
# Scratch lines: z²; the roots; the eigenvectors' lengths; then two matrices.
ROOTS, LENGTHS, VECTORS = 1, 1 + ROOT_LINES, 2 + ROOT_LINES


def rank_one_lines(most: int) -> int:
    """The scratch lines for matrices of `most` lines."""
    return VECTORS + 2 * (most + LINES_AT_ONCE - 1)


@jit
def add_outer_product(a: Array, W: int, n: int, d: int, z: int, lines: int, scratch: int) -> int:
    """Replace d, z and the n lines of Q by those of Qᵀ diag(d) Q + ggᵀ, where z = Qg.

    Returns the number of roots of the secular equation. Eigenvalues are NaN if numbers are too
    unlike.
    """
    unit = _rescale(a, n, d, z)
    active = _deflate(a, W, n, d, z, lines)
    if active > 0:
        _solve(a, W, active, d, z, scratch)
        _turn(a, W, active, d, z, lines, scratch)
    if active < n:
        _sort(a, W, n, d, z, lines)
    for i in range(n):
        a[d + i] /= unit * unit
        a[z + i] /= unit
    return active


@jit
def _rescale(a: Array, n: int, d: int, z: int) -> float:
    size = math.sqrt(a[d])
    for i in range(n):
        size = max(size, abs(a[z + i]))
    if not math.isfinite(size):
        return 1.0
    unit = math.ldexp(1.0, min(max(LARGEST - math.frexp(size)[1], -500), 500))
    for i in range(n):
        a[d + i] *= unit * unit
        a[z + i] *= unit
    return unit


@jit
def _exchange(a: Array, W: int, d: int, z: int, lines: int, i: int, k: int) -> None:
    for vector in (d, z):
        a[vector + i], a[vector + k] = a[vector + k], a[vector + i]
    for j in range(W):
        at, other = lines + i * W + j, lines + k * W + j
        a[at], a[other] = a[other], a[at]


@jit
def _deflate(a: Array, W: int, n: int, d: int, z: int, lines: int) -> int:
    """Put the eigenpairs that hardly change last; return the others' number."""
    active = 0
    for i in range(n):
        # Leaving z_i out changes entries of the matrix by less than ε√(d_i d_j).
        if a[z + i] * a[z + i] <= EPSILON * EPSILON * a[d + i]:
            a[z + i] = 0.0
            continue
        last = active - 1
        if active > 0 and a[d + last] - a[d + i] <= SAME * a[d + last]:
            length = math.hypot(a[z + last], a[z + i])
            c, s = a[z + last] / length, a[z + i] / length
            for k in range(W):
                first, second = a[lines + last * W + k], a[lines + i * W + k]
                a[lines + last * W + k] = c * first + s * second
                a[lines + i * W + k] = c * second - s * first
            a[z + last], a[z + i] = length, 0.0
            continue
        if active < i:
            _exchange(a, W, d, z, lines, active, i)
        active += 1
    return active


@jit
def _solve(a: Array, W: int, n: int, d: int, z: int, scratch: int) -> None:
    squares, roots = scratch, scratch + ROOTS * W
    total = squared(a, W, z, squares)
    for first in range(0, n, AT_ONCE):
        secular_start(a, W, d, squares, n, 2.0 * total, roots, first)
        for _ in range(MOST_STEPS):
            if not secular_step(a, W, d, squares, n, roots, first):
                break
        else:
            a[roots + TAU * W + first] = math.nan  # so that the caller sees it


@jit
def _turn(a: Array, W: int, n: int, d: int, z: int, lines: int, scratch: int) -> None:
    roots, lengths = scratch + ROOTS * W, scratch + LENGTHS * W
    vectors = scratch + VECTORS * W
    new = vectors + (n + LINES_AT_ONCE - 1) * W
    for k in range(W):
        a[lengths + k] = 0.0
    for first in range(0, n, AT_ONCE):
        secular_columns(a, W, d, z, n, roots, vectors, lengths, first)
    for first in range(0, n, AT_ONCE):
        secular_values(a, W, d, z, n, roots, lengths, first)
    for first in range(0, W, AT_ONCE):
        turned(a, W, n, vectors, lengths, lines, new, first)
    for k in range(n * W):
        a[lines + k] = a[new + k]


@jit
def _sort(a: Array, W: int, n: int, d: int, z: int, lines: int) -> None:
    for i in range(1, n):
        k = i
        while k > 0 and a[d + k - 1] < a[d + k]:
            _exchange(a, W, d, z, lines, k - 1, k)
            k -= 1
