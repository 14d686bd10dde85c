"""The instructions of koco_stream.numerics.rank_one, for eight roots or columns at a time.

Root i of the secular equation 1 + Σ_j z_j²/(d_j − λ) = 0, d decreasing, lies between d_i and
d_{i−1}. It is λ = origin + τ with the nearer pole as origin, so that d_j − λ keeps its digits.
Arguments are offsets in a flat array `a`, in rows of W numbers.
"""

from typing import Any

from koco_stream.numerics.instructions.registers import Registers, instruction, total

AT_ONCE = 8
LINES_AT_ONCE = 4
EPSILON = 2.0**-52
NEARLY = 1e-6  # a root is exact after the next step of interpolation, which cubes what it is off

# The lines of the roots: origins; the two poles beside a root and τ, from its origin on; between
# what τ is known to be.
ORIGIN, LEFT, RIGHT, TAU, LOW, HIGH, ROOT_LINES = range(7)


def counted(e: Registers, first: Any) -> Any:
    """first, first + 1, …"""
    return e.joined([float(k) for k in range(AT_ONCE)]) + e.float(first)


def positive_root(e: Registers, square: Any) -> Any:
    """√x, or 0 where x is not positive."""
    return e.sqrt(e.select(square > 0.0, square, 0.0))


@instruction("float64", AT_ONCE)
def squared(e: Registers, a: Any, W: Any, z: Any, out: Any) -> Any:
    """a[out:] ← z_j²; returns their sum."""
    sums = e.variables(e.zeros())
    for first in e.loop(W, AT_ONCE):
        numbers = e.load(a, z + first)
        e.store(numbers * numbers, a, out + first)
        sums[0] = sums[0] + numbers * numbers
    return total(e, sums[0])


@instruction("void", AT_ONCE)
def secular_start(
    e: Registers, a: Any, W: Any, d: Any, squares: Any, n: Any, most: Any, roots: Any, first: Any
) -> None:
    """Start eight roots as if all poles but their own two added what they add in the middle.

    The first root is less than `most` above d_0.
    """
    number, zero = counted(e, first), e.zeros()
    pole, next_pole = e.load(a, d + first), e.load(a, d + first - 1)
    own, other = e.load(a, squares + first), e.load(a, squares + first - 1)
    is_first = number == 0.0
    gap, other = e.select(is_first, most, next_pole - pole), e.select(is_first, 0.0, other)
    middle, sums = gap * 0.5, e.variables(zero + 1.0)
    for j in e.loop(n):
        term = zero + e.number(a, squares + j)
        term = term / (zero + e.number(a, d + j) - pole - middle)
        beside = (number == e.float(j)) | (number == e.float(j + 1))
        sums[0] = sums[0] + e.select(beside, 0.0, term)
    rest = sums[0]
    to_left = is_first | (rest + (other - own) / middle >= 0.0)
    weight, signed = e.select(to_left, own, other), e.select(to_left, rest, zero - rest)
    b = signed * gap + own + other
    root = positive_root(e, b * b - signed * weight * gap * 4.0)
    size = e.select(b > 0.0, weight * gap * 2.0 / (b + root), (b - root) * 0.5 / signed)
    limit = e.select(is_first, gap, middle)
    size = e.select((size > 0.0) & (size < limit), size, limit * 0.5)
    values = {
        ORIGIN: e.select(to_left, pole, next_pole),
        LEFT: e.select(to_left, 0.0, zero - gap),
        RIGHT: e.select(to_left, gap, 0.0),
        TAU: e.select(to_left, size, zero - size),
        LOW: e.select(to_left, 0.0, zero - limit),
        HIGH: e.select(to_left, limit, 0.0),
    }
    for k, numbers in values.items():
        e.store(numbers, a, roots + W * k + first)


@instruction("boolean", AT_ONCE)
def secular_step(
    e: Registers, a: Any, W: Any, d: Any, squares: Any, n: Any, roots: Any, first: Any
) -> Any:
    """Improve eight roots by Gragg's rational interpolation, or by halving their bounds.

    Returns whether one is not exact yet.
    """
    origin, left, right, tau, low, high = (
        e.load(a, roots + W * k + first) for k in range(ROOT_LINES)
    )
    zero = e.zeros()
    sums = e.variables(zero + 1.0, zero + 1.0, zero, zero)
    for j in e.loop(n):
        f, size, slope, bend = sums
        inverse = (zero + 1.0) / (zero + e.number(a, d + j) - origin - tau)
        term = inverse * e.number(a, squares + j)
        steep = term * inverse
        parts = f + term, size + e.abs(term), slope + steep, e.fma(steep, inverse, bend)
        for k, part in enumerate(parts):
            sums[k] = part
    f, size, slope, bend = sums
    count, lost = e.float(n), f != f
    inexact = ((size * (count * EPSILON) < e.abs(f)) | lost) & (counted(e, first) < count)
    far = (size * NEARLY < e.abs(f)) | lost
    low, high = e.select(f < 0.0, tau, low), e.select(f < 0.0, high, tau)
    # f(λ + η) ≈ c + s/(left − η) + S/(right − η), with f's value and first two derivatives.
    to_left, to_right = left - tau, right - tau
    s = to_left * (bend * to_right - slope) / (to_right - to_left)
    c = f - to_left * s - to_right * (slope - s)
    product = to_left * to_right
    b = product * f
    half = (to_left + to_right) * f - product * slope
    root = positive_root(e, half * half - b * c * 4.0)
    new = e.select(half < 0.0, (half - root) / (c * 2.0), b * 2.0 / (half + root)) + tau
    inside = (new > low) & (new < high)
    new = e.select(inside, new, e.select(far, (low + high) * 0.5, tau))
    for k, numbers in ((LOW, low), (HIGH, high), (TAU, e.select(inexact, new, tau))):
        e.store(numbers, a, roots + W * k + first)
    return e.any(inexact & far)


@instruction("void", AT_ONCE)
def secular_columns(
    e: Registers,
    a: Any,
    W: Any,
    d: Any,
    z: Any,
    n: Any,
    roots: Any,
    out: Any,
    sums: Any,
    first: Any,
) -> None:
    """Eight columns of the eigenvectors ẑ_j/(d_j − λ_i), row i for root i.

    These are the exact roots for ẑ (Gu and Eisenstat), so the rows are orthogonal. Their squares
    are added to sums[i].
    """
    own, weights = e.load(a, d + first), e.load(a, z + first)
    number, zero = counted(e, first), e.zeros()
    product = e.variables(zero + 1.0)
    for i in e.loop(n):
        apart = own - e.number(a, roots + i) - e.number(a, roots + W * TAU + i)
        e.store(apart, a, out + i * W + first)
        ratio = apart / (own - e.number(a, d + i))
        product[0] = product[0] * e.select(number == e.float(i), zero - apart, ratio)
    size = e.sqrt(e.abs(product[0]))
    estimate = e.select(weights < 0.0, zero - size, size)
    for i in e.loop(n):
        row = estimate / e.load(a, out + i * W + first)
        row = e.select(weights == 0.0, 0.0, row)
        e.store(row, a, out + i * W + first)
        e.store(e.number(a, sums + i) + total(e, row * row), a, sums + i)


@instruction("void", AT_ONCE)
def secular_values(
    e: Registers, a: Any, W: Any, d: Any, z: Any, n: Any, roots: Any, sums: Any, first: Any
) -> None:
    """Eight roots go to d, z in the eigenvectors' basis to z, and their scales to sums."""
    there, zero = counted(e, first) < e.float(n), e.zeros()
    origin, tau = e.load(a, roots + first), e.load(a, roots + W * TAU + first)
    squares = e.load(a, sums + first)
    scale = (zero + 1.0) / e.sqrt(squares)
    values = e.select(there, origin + tau + squares * 0.0, e.load(a, d + first))
    e.store(values, a, d + first)
    e.store(e.select(there, zero - scale, 0.0), a, z + first)
    e.store(scale, a, sums + first)


@instruction("void", AT_ONCE)
def turned(
    e: Registers,
    a: Any,
    W: Any,
    n: Any,
    vectors: Any,
    scales: Any,
    lines: Any,
    out: Any,
    first: Any,
) -> None:
    """Eight columns of out_i ← scale_i·Σ_j vectors_ij·lines_j.

    Up to three rows behind the n-th are written too.
    """
    for i in e.loop(n, LINES_AT_ONCE):
        rows = [i + k for k in range(LINES_AT_ONCE)]
        totals = e.variables(*(e.zeros() for _ in rows))
        for j in e.loop(n):
            numbers = e.load(a, lines + j * W + first)
            for k, row in enumerate(rows):
                totals[k] = e.fma(numbers, e.number(a, vectors + row * W + j), totals[k])
        for k, row in enumerate(rows):
            e.store(totals[k] * e.number(a, scales + row), a, out + row * W + first)
