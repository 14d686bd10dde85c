"""The eigenpairs of a symmetric matrix after a rank-one change, from those before.

With z = Qg, Qᵀ diag(d) Q + ggᵀ has the eigenvalues of diag(d) + zzᵀ, whose eigenvectors turn the
lines of Q. They come in O(n²) from Golub's secular equation, each correct relative to itself, and
Gu and Eisenstat's formula. Deflation leaves out what z barely touches, and one of two equal
eigenvalues.
"""

import math
from typing import Any

from koco_stream.numerics.compiler import jit
from koco_stream.numerics.eigenvalues import EPSILON, exchange, rotate, sort_pairs, unit_scale
from koco_stream.numerics.instructions.registers import Registers, instruction, total
from koco_stream.types import Array

AT_ONCE = 8
ROWS_AT_ONCE = 4
SAME = 8.0 * EPSILON  # eigenvalues that differ by this share of them are one
LARGEST = 100  # the scale of all numbers, so that eigenvalues of a ratio of 10¹²⁰ have their digits
MOST_STEPS = 100  # of which halving the bounds alone needs 60
NEARLY = 1e-6  # a root is exact after the next step of interpolation, which cubes what it is off
# Root i of 1 + Σ_j z_j²/(d_j − λ), d decreasing, lies between d_i and d_{i−1}, the first less than
# 2‖z‖² above d_0. It is λ = origin + τ with the nearer pole as origin, so that d_j − λ keeps its
# digits. Rows of scratch: the origins; from these on, the two poles beside a root, τ, and what τ is
# known to be between; d_{i−1} and its distance; the eigenvectors' square lengths.
ORIGIN, LEFT, RIGHT, TAU, LOW, HIGH, NEXT, GAP, LENGTHS, VECTORS = range(10)


def scratch_rows(n: int) -> int:
    """The rows of scratch for the change of so many eigenpairs."""
    return VECTORS + 2 * (n + ROWS_AT_ONCE - 1)


@jit
def add_outer_product(d: Array, z: Array, Q: Array, n: int, scratch: Array) -> int:
    """Replace d, z and the n rows of Q by those of Qᵀ diag(d) Q + ggᵀ, where z = Qg.

    All rows are as long, a multiple of 8; d and z are zero from n on. Returns the number of roots.
    Eigenvalues are NaN if numbers are too unlike.
    """
    size = math.sqrt(d[0])
    for i in range(n):
        size = max(size, abs(z[i]))
    unit = math.ldexp(unit_scale(size), LARGEST) if math.isfinite(size) else 1.0
    for i in range(n):
        d[i] *= unit * unit
        z[i] *= unit
    active = _deflate(d, z, Q, n)
    if active > 0:
        _find_roots(d, z, active, scratch)
        _turn(d, z, Q, active, scratch, scratch[VECTORS + active + ROWS_AT_ONCE - 1 :])
    if active < n:
        sort_pairs(Q, n, d, z)
    for i in range(n):
        d[i] /= unit * unit
        z[i] /= unit
    return active


@jit
def _deflate(d: Array, z: Array, Q: Array, n: int) -> int:
    """Put the eigenpairs that hardly change last; return the others' number."""
    active = 0
    for i in range(n):
        last = active - 1
        # Leaving z_i out changes entries of the matrix by less than ε√(d_i d_j).
        if z[i] * z[i] <= EPSILON * EPSILON * d[i]:
            z[i] = 0.0
        elif active > 0 and d[last] - d[i] <= SAME * d[last]:
            length = math.hypot(z[last], z[i])
            rotate(Q[last], Q[i], z[last] / length, z[i] / length)
            z[last], z[i] = length, 0.0
        else:
            if active < i:
                exchange(Q, d, z, active, i)
            active += 1
    return active


@jit
def _find_roots(d: Array, z: Array, n: int, roots: Array) -> None:
    total = 0.0
    for i in range(n):
        total += z[i] * z[i]
    for k in range((n + AT_ONCE - 1) // AT_ONCE * AT_ONCE):
        i = min(k, n - 1)  # what is behind the last root is like it
        gap = d[i - 1] - d[i] if i > 0 else 2.0 * total
        roots[ORIGIN, k], roots[NEXT, k] = d[i], d[max(i - 1, 0)]
        roots[LEFT, k] = roots[LOW, k] = roots[LENGTHS, k] = 0.0
        roots[RIGHT, k] = roots[HIGH, k] = gap
        roots[TAU, k], roots[GAP, k] = 0.5 * gap, gap if i > 0 else 0.0
    for first in range(0, n, AT_ONCE):
        inexact = first_step(d, z, n, n * EPSILON, roots, first)
        for _ in range(MOST_STEPS):
            if not inexact:
                break
            inexact = next_step(d, z, n, n * EPSILON, roots, first)
        if inexact:
            roots[TAU, first] = math.nan  # so that the caller sees it


@instruction("boolean", AT_ONCE)
def first_step(e: Registers, d: Any, z: Any, n: Any, rounding: Any, roots: Any, first: Any) -> Any:
    """`next_step` from the middle between two poles, of which the nearer becomes the origin."""
    sums = function_at(e, d, z, n, e.load(roots, ORIGIN, first), e.load(roots, TAU, first))
    near_next = sums[0] < 0.0
    origin = e.select(near_next, e.load(roots, NEXT, first), e.load(roots, ORIGIN, first))
    e.store(origin, roots, ORIGIN, first)
    gap = e.select(near_next, e.load(roots, GAP, first), e.zeros())
    for k in range(LEFT, HIGH + 1):
        e.store(e.load(roots, k, first) - gap, roots, k, first)
    return interpolate(e, sums, rounding, roots, first)


@instruction("boolean", AT_ONCE)
def next_step(e: Registers, d: Any, z: Any, n: Any, rounding: Any, roots: Any, first: Any) -> Any:
    """Improve eight roots; return whether one is not exact."""
    sums = function_at(e, d, z, n, e.load(roots, ORIGIN, first), e.load(roots, TAU, first))
    return interpolate(e, sums, rounding, roots, first)


def function_at(e: Registers, d: Any, z: Any, n: Any, origin: Any, tau: Any) -> Any:
    """f, the sum of its terms' sizes, f' and half of f''."""
    one = e.zeros() + 1.0
    sums = e.variables(one, one, e.zeros(), e.zeros())
    for j in e.loop(n):
        inverse = one / (e.number(d, j) - origin - tau)
        term = inverse * (e.number(z, j) * e.number(z, j))
        sums[0] = sums[0] + term
        sums[1] = sums[1] + e.abs(term)
        sums[2] = sums[2] + term * inverse
        sums[3] = e.fma(term * inverse, inverse, sums[3])
    return sums


def interpolate(e: Registers, sums: Any, rounding: Any, roots: Any, first: Any) -> Any:
    """Gragg's rational interpolation, f(λ + η) ≈ c + s/(left − η) + S/(right − η), with f's value
    and first two derivatives; or the middle of τ's bounds. Returns whether a root is not exact.
    """
    f, size, slope, bend = sums[0], sums[1], sums[2], sums[3]
    tau = e.load(roots, TAU, first)
    low = e.select(f < 0.0, tau, e.load(roots, LOW, first))
    high = e.select(f < 0.0, e.load(roots, HIGH, first), tau)
    left, right = e.load(roots, LEFT, first) - tau, e.load(roots, RIGHT, first) - tau
    s = left * (bend * right - slope) / (right - left)
    c = f - left * s - right * (slope - s)
    b = left * right * f
    half = (left + right) * f - left * right * slope
    square = half * half - b * c * 4.0
    root = e.sqrt(e.select(0.0 < square, square, e.zeros()))
    new = tau + e.select(half < 0.0, (half - root) / (c * 2.0), b * 2.0 / (half + root))
    far = (e.abs(f) <= size * NEARLY) ^ True
    new = e.select((low < new) & (new < high), new, e.select(far, (low + high) * 0.5, tau))
    e.store(e.select(e.abs(f) <= size * rounding, tau, new), roots, TAU, first)
    e.store(low, roots, LOW, first)
    e.store(high, roots, HIGH, first)
    return e.any(far)


@jit
def _turn(d: Array, z: Array, Q: Array, n: int, roots: Array, new: Array) -> None:
    vectors = roots[VECTORS:]
    eigenvectors(d, z, n, roots, vectors)
    combined(vectors, Q, n, new)
    for i in range(n):
        scale = 1.0 / math.sqrt(roots[LENGTHS, i])
        d[i] = roots[ORIGIN, i] + roots[TAU, i] + 0.0 * scale
        z[i] = -scale
        for j in range(Q.shape[1]):
            Q[i, j] = scale * new[i, j]


@instruction("void", AT_ONCE)
def eigenvectors(e: Registers, d: Any, z: Any, n: Any, roots: Any, out: Any) -> None:
    """The eigenvectors ẑ_j/(d_j − λ_i), row i for root i, and their square lengths.

    The roots are exact for ẑ (Gu and Eisenstat), so that the rows are orthogonal.
    """
    for first in e.loop(n, AT_ONCE):
        own, weights = e.load(d, first), e.load(z, first)
        product = e.variables(e.zeros() + 1.0)
        for i in e.loop(n):
            apart = own - e.number(roots, ORIGIN, i) - e.number(roots, TAU, i)
            e.store(apart, out, i, first)
            pole = e.number(d, i)
            product[0] = product[0] * e.select(own == pole, -apart, apart / (own - pole))
        size = e.sqrt(e.abs(product[0]))
        estimate = e.select(weights < 0.0, -size, size)
        for i in e.loop(n):
            row = e.select(weights == 0.0, e.zeros(), estimate / e.load(out, i, first))
            e.store(row, out, i, first)
            e.store(e.number(roots, LENGTHS, i) + total(e, row * row), roots, LENGTHS, i)


@instruction("void", AT_ONCE)
def combined(e: Registers, factors: Any, rows: Any, n: Any, out: Any) -> None:
    """out_i ← Σ_j factors_ij·rows_j, four rows at once."""
    for first in e.loop(rows.shape[1], AT_ONCE):
        for i in e.loop(n, ROWS_AT_ONCE):
            totals = e.variables(*(e.zeros() for _ in range(ROWS_AT_ONCE)))
            for j in e.loop(n):
                row = e.load(rows, j, first)
                for k in range(ROWS_AT_ONCE):
                    totals[k] = e.fma(row, e.number(factors, i + k, j), totals[k])
            for k in range(ROWS_AT_ONCE):
                e.store(totals[k], out, i + k, first)
